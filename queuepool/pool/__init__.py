"""How a pool is put together: the start, and what each process begins with."""
