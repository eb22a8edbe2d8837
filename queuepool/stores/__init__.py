"""The queues: one contract, one folder for each kind of store."""
