"""Assembles a pool: its start, and what each of its processes runs."""
