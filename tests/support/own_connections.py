"""An application's own connections to a database, of each library that ``within`` takes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pymysql
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

_DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
_DRIVERS["mariadb"] = _DRIVERS["mysql"]
_BACKENDS = {"sqlite": "sqlite3", "postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}


def engine_of(url: str) -> Engine:
    """An engine as an application makes it."""
    scheme, _, rest = url.partition("://")
    return create_engine(f"{_DRIVERS[scheme]}://{rest}", poolclass=NullPool)


@contextmanager
def sqlalchemys(url: str) -> Iterator[Any]:
    with engine_of(url).connect() as connection:
        yield connection


@contextmanager
def session(url: str) -> Iterator[Any]:
    with Session(engine_of(url)) as opened:
        yield opened


@contextmanager
def scoped(url: str) -> Iterator[Any]:
    registry = scoped_session(sessionmaker(engine_of(url)))
    try:
        yield registry
    finally:
        registry.remove()


@contextmanager
def drivers(url: str, **options: Any) -> Iterator[Any]:
    with closing(_connect(url, **options)) as connection:
        yield connection


@contextmanager
def lent(url: str) -> Iterator[Any]:
    """A driver's, as SQLAlchemy's pool lends it."""
    with closing(engine_of(url).raw_connection()) as connection:
        yield connection


@contextmanager
def djangos(url: str) -> Iterator[Any]:
    """In a transaction, as inside of ``atomic()``."""
    with closing(django_connection(url)) as connection:
        connection.set_autocommit(False)
        yield connection


#: each in a transaction that its ``commit()`` and ``rollback()`` end
KINDS: dict[str, Callable[[str], Any]] = {
    "connection": sqlalchemys,
    "session": session,
    "scoped_session": scoped,
    "driver": drivers,
    "lent": lent,
    "django": djangos,
}


def django_connection(url: str) -> Any:
    """A connection of Django's to this database."""
    import django
    from django.conf import settings
    from django.db.utils import ConnectionHandler

    if not settings.configured:
        settings.configure(LOGGING_CONFIG=None, TIME_ZONE="UTC")
    django.setup()
    parsed = make_url(url)
    about = {"ENGINE": f"django.db.backends.{_BACKENDS[parsed.get_backend_name()]}", "NAME": parsed.database}
    socket = parsed.query.get("host") or parsed.query.get("unix_socket") or ""
    if parsed.get_backend_name() in ("mysql", "mariadb"):
        pymysql.version_info = (2, 2, 7, "final", 0)  # it stands in for mysqlclient, of which Django asks that version
        pymysql.install_as_MySQLdb()
        about |= {"OPTIONS": {"unix_socket": socket}}
    else:
        about |= {"HOST": socket}
    return ConnectionHandler({"default": about | {"USER": parsed.username or "", "PASSWORD": ""}})["default"]


def _connect(url: str, **options: Any) -> Any:
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return sqlite3.connect(str(parsed.database), **options)
    if parsed.get_backend_name() == "postgresql":
        return psycopg.connect(host=str(parsed.query["host"]), dbname=parsed.database, user=parsed.username, **options)
    socket, user = str(parsed.query["unix_socket"]), parsed.username
    return pymysql.connect(unix_socket=socket, user=user, database=parsed.database, charset="utf8mb4", **options)
