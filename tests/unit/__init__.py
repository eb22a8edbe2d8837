"""One module at a time: no pool, and a server only where a push needs one."""
