"""What other programs read of a pool: metrics for Prometheus, and health over HTTP, from its board alone."""
