"""Tables that are almost Laravel's."""

from __future__ import annotations

#: by the database: how ``jobs`` comes to take a payload of NULL
NULLABLE = {
    "sqlite": [
        "DROP TABLE jobs",
        "CREATE TABLE jobs (id integer PRIMARY KEY AUTOINCREMENT NOT NULL, queue varchar NOT NULL, payload text,"
        " attempts integer NOT NULL, reserved_at integer, available_at integer NOT NULL, created_at integer NOT NULL)",
    ],
    "postgresql": ["ALTER TABLE jobs ALTER payload DROP NOT NULL"],
    "mariadb": ["ALTER TABLE jobs MODIFY payload longtext NULL"],
}
