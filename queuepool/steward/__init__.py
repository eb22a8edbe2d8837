"""The process that looks after the pool's jobs in the store: leases, delays, dead workers' jobs, control keys."""
