"""Alerts: what an operator is told about a pool, its queues and the other pools on its store."""
