"""Many hosts on one store, whose network, clocks and lives fail: ``scripts/bench --hosts``."""
