"""The master: the process that forks and watches all others."""
