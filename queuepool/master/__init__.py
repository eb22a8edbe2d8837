"""The process that forks and watches all others."""
