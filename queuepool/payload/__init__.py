"""Laravel's payload: its envelope, data and signature."""
