"""Alerts: what an operator is told of a pool, of its queues and of the pools beside it."""
