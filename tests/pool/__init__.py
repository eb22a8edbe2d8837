"""Whole pools: their processes, how they are operated, and what they die of."""
