"""What a configuration may say, and what it says."""
