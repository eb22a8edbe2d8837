"""What pools have done over a time: kept in the store bucket by bucket, and read again."""
