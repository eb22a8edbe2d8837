"""A prefork worker pool with a watchdog for Laravel's queue."""
