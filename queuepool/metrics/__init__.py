"""What other programs read about a pool: metrics for Prometheus, and health over HTTP, from its board alone."""
