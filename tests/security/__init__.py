"""What others may not do to a pool, its store, its files and its secrets."""
