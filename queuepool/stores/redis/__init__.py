"""Laravel's Redis queue: its keys, one Lua file for each change of state."""
