"""Figures of speed, each against something on the same machine in the same run: ``scripts/bench``."""
