"""Laravel's payload: its envelope, its data, its signature."""
