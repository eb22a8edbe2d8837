"""The stores: one contract, and one package for each kind of store."""
