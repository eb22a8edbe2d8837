"""What pools did over time: written to the store bucket by bucket, and read back."""
