"""How rate and latency change with how much there is: ``scripts/bench --scale``."""
