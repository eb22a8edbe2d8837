"""Laravel's Redis queue: its keys, and one Lua file for each change of state."""
