"""The verdict on an attempt, and how it is written to the store."""
