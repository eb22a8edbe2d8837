"""The process that looks after the store: leases, delayed jobs, dead workers' jobs, control keys."""
