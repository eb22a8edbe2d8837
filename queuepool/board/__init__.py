"""Facts that the processes of a pool share, in memory and in the pool's directory."""
