"""The stores: what each of them does, and what is done with them without a pool."""
