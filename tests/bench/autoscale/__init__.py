"""How a pool scales by itself, simulated beside Horizon's way: ``scripts/bench --autoscale``."""
