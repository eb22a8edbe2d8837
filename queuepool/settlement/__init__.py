"""What becomes of an attempt, and how that is written to the store."""
