"""The URL of a database of Django's, from its entry in ``DATABASES``.

A test's database in memory has no URL, and no other process could read it: its queue is in a temporary file.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, quote, quote_from_bytes, unquote_to_bytes, urlsplit

from django.db import connections

from queuepool.config.urls import bracketed

_Options = Mapping[str, Any]
#: keys of DATABASES about a login or a session that concern only Django
_DJANGOS = frozenset((
    "connect_timeout", "read_timeout", "write_timeout", "isolation_level", "pool", "server_side_binding",
    "client_encoding",
    "charset", "use_unicode", "init_command", "sql_mode", "conv", "autocommit", "cursor_factory",
))  # fmt: skip
#: options of libpq that a URL takes unchanged
_LIBPQ = frozenset((
    "sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "ssl_min_protocol_version", "options", "application_name",
    "target_session_attrs", "channel_binding", "gssencmode", "krbsrvname", "keepalives", "keepalives_idle",
    "keepalives_interval", "keepalives_count", "tcp_user_timeout", "prepare_threshold",
))  # fmt: skip
#: what a file's URI may contain: it is opened like this anyway
_HARMLESS = frozenset(((b"mode", b"rw"), (b"mode", b"rwc")))
_MYSQLS_SSL = {"ca": "ssl_ca", "cert": "ssl_cert", "key": "ssl_key"}
_SOCKETS = {"postgresql": "/var/run/postgresql", "mysql": "/run/mysqld/mysqld.sock"}


def connection_of(alias: str) -> Any:
    """Django's connection of this name. Raises ``ValueError``."""
    known = list(connections)
    if alias in known:
        return connections[alias]
    close = get_close_matches(alias, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
    raise ValueError(f"{alias!r} is not in DATABASES; {hint}")


def url_of(alias: str) -> str:
    """The URL of this database, as it is now: a test's has another name.

    A database in memory, which no worker could reach, gives a temporary file. Raises ``ValueError``.
    """
    connection = connection_of(alias)
    translate = _TRANSLATIONS.get(connection.vendor)
    if translate is None:
        raise ValueError(
            f"DATABASES[{alias!r}] is of {connection.vendor}, but a queue needs SQLite, PostgreSQL or MySQL"
        )
    try:
        return translate(connection)
    except ValueError as error:
        raise ValueError(f"DATABASES[{alias!r}] {error}: give the queue a url instead") from None


def _sqlite(connection: Any) -> str:
    if connection.is_in_memory_db():
        return temporary_url()
    path = os.path.abspath(_file_of(os.fsencode(connection.settings_dict["NAME"])))
    return f"sqlite:///{quote_from_bytes(path)}"


def _file_of(name: bytes) -> bytes:
    """The path in a name; SQLite takes one that begins with ``file:`` as a URI. Raises ``ValueError``."""
    if not name.startswith(b"file:"):
        return name
    parts = urlsplit(name)
    for key, value in parse_qsl(parts.query):
        if (key, value) not in _HARMLESS and key != b"cache":
            said = os.fsdecode(key + b"=" + value)
            raise ValueError(f"has a NAME with {said!r}, which a URL cannot express")
    if parts.netloc not in (b"", b"localhost"):
        raise ValueError("has a NAME with a host, but the file must be on this one")
    return unquote_to_bytes(parts.path)


def _postgresql(connection: Any) -> str:
    about = connection.settings_dict
    return _server("postgresql", "host", about, _known(about["OPTIONS"], _LIBPQ))


def _mysql(connection: Any) -> str:
    about = dict(connection.settings_dict)
    options = dict(about["OPTIONS"])
    about["HOST"] = options.pop("unix_socket", "") or about["HOST"]
    ssl = {_MYSQLS_SSL.get(key, f"ssl.{key}"): value for key, value in (options.pop("ssl", None) or {}).items()}
    return _server("mysql", "unix_socket", about, _known(options | ssl, frozenset(_MYSQLS_SSL.values())))


def _known(options: _Options, known: frozenset[str]) -> dict[str, str]:
    """The options for a URL. Raises ``ValueError`` for one that could lead elsewhere, or give other rights."""
    for key in options.keys() - known - _DJANGOS:
        raise ValueError(f"has the option {key!r}, which a URL cannot express")
    return {key: _text_of(key, value) for key, value in options.items() if key in known and not _is_unset(key, value)}


def _is_unset(key: str, value: object) -> bool:
    """Whether it is as if the option were missing: the driver leaves out what is ``None``, except for this one."""
    return value is None and key != "prepare_threshold"


def _text_of(key: str, value: object) -> str:
    if value is None:
        return "none"
    return str(int(value)) if isinstance(value, bool) else str(value)


def _server(scheme: str, socket: str, about: Mapping[str, Any], options: dict[str, str]) -> str:
    host = str(about["HOST"])
    if not host:
        raise ValueError(f"has no HOST: write the path of the socket, as {_SOCKETS[scheme]!r}, or a host")
    if not about["NAME"]:
        raise ValueError("has no NAME")
    if host.startswith("/"):
        host, options = "", options | {socket: host}
    login = ":".join(quote(str(about[key]), safe="") for key in ("USER", "PASSWORD") if about[key])
    place = _places(host.split(","), str(about["PORT"]).split(","))
    query = "&".join(f"{key}={quote(value, safe='/')}" for key, value in options.items())
    name = quote(str(about["NAME"]), safe="")
    return f"{scheme}://{login}{'@' * bool(login)}{place}/{name}{'?' * bool(query)}{query}"


def _places(hosts: list[str], ports: list[str]) -> str:
    """The hosts with their ports; as for libpq, one port is that of all. Raises ``ValueError``."""
    ports = ports * len(hosts) if len(ports) == 1 else ports
    if len(ports) != len(hosts):
        raise ValueError("has not as many ports as hosts")
    named = map(bracketed, hosts)
    return ",".join(f"{host}:{port}" if port else host for host, port in zip(named, ports, strict=True))


_TRANSLATIONS: Mapping[str, Callable[[Any], str]] = MappingProxyType({
    "sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql,
})  # fmt: skip


def temporary_url() -> str:
    """The URL of this process's own queue, which lasts as long as the process."""
    return _url(os.getpid())


@cache
def _url(pid: int) -> str:
    from queuepool.stores.sql.client import SqlClient  # imported here: only tests need it
    from queuepool.stores.sql.migrate import migrate

    folder = tempfile.mkdtemp(prefix="queuepool-test-")
    atexit.register(_remove, folder, pid)
    url = f"sqlite:///{folder}/queuepool.db"
    with closing(SqlClient(url, create=True)) as client:
        migrate(client)
    return url


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:  # not in a child that inherited it
        shutil.rmtree(folder, ignore_errors=True)
