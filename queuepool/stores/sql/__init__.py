"""Laravel's database queue: its tables on SQLite, PostgreSQL, MariaDB and MySQL."""
