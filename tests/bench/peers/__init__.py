"""Other queues beside this one, in turn on the same server: ``scripts/bench --peers``."""
