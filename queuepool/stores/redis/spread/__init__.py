"""Queues on a Redis Cluster that are each in the slot of their own hash tag, as Laravel's are there."""
