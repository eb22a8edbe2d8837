"""URLs of stores: which are valid, and which of their parts may be shown. No error repeats a part of a URL."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import parse_qsl, quote, quote_from_bytes, unquote, unquote_to_bytes, urlsplit

from queuepool.config import sentinels

LONGEST_SOCKET_PATH = 107  # the kernel's 108, minus the closing NUL
CLUSTERS = ("redis+cluster", "rediss+cluster")
REDIS = ("redis", "rediss", "unix", *CLUSTERS, *sentinels.SCHEMES)
SERVERS = ("postgresql", "mysql", "mariadb")
_REDIS_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_MYSQL = ("ssl_ca", "ssl_cert", "ssl_key")
_CHARSET = {"charset": "utf8mb4"}  # set anyway
#: the TLS options that name files: the CA's certificate, the client's certificate, the client's key
TLS_FILES: Mapping[str, tuple[str, str, str]] = MappingProxyType({
    **dict.fromkeys(("rediss", "rediss+cluster", "rediss+sentinel"), _REDIS_TLS),
    "postgresql": ("sslrootcert", "sslcert", "sslkey"),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
})  # fmt: skip
#: the port that a server listens on unless its URL names another
_PORTS = MappingProxyType({"redis": 6379, "rediss": 6379, "postgresql": 5432, "mysql": 3306, "mariadb": 3306})
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
#: SQLAlchemy's way to name a driver, in place of which we use ours; and what some hosts call PostgreSQL
_DRIVER = re.compile(r"(postgresql|mysql|mariadb|sqlite)\+[a-z0-9_]+")
_POSTGRES = "postgres"
#: Valkey is reached as Redis is
_VALKEY = re.compile(r"valkey(s?)(\+\w+)?")
_SENTINEL, _CLUSTER = re.compile("(rediss?-)?sentinels?"), re.compile("(rediss?-)?clusters?")
_FILE, _SOCKET = "[^#]+", "/[^#]+"
#: libpq's way to name a host, or several; ``url`` writes them before the database
_HOSTS = "[^#/@]*"
#: the sessions in which jobs can be written
_WRITING = ("read-write", "primary")
_SSL = dict.fromkeys(_REDIS_TLS, _FILE) | {"ssl_cert_reqs": "required"}
_NUMBER = "[0-9]{1,6}"
#: more options of libpq and its driver; not those for the login and timeouts, which the URL and the pool set
_LIBPQ = {
    "prepare_threshold": f"none|{_NUMBER}", "application_name": "[^#&]+", "options": "[^#&]+",
    "target_session_attrs": "any|read-write|read-only|primary|standby|prefer-standby",
    "channel_binding": "disable|prefer|require", "gssencmode": "disable|prefer|require", "krbsrvname": r"\w+",
    "sslcrl": _FILE, "ssl_min_protocol_version": r"TLSv1\.[0-3]|TLSv1",
    "keepalives": "[01]", "keepalives_idle": _NUMBER, "keepalives_interval": _NUMBER, "keepalives_count": _NUMBER,
    "tcp_user_timeout": _NUMBER,
}  # fmt: skip
_OPTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "redis": {},
    "redis+cluster": {},
    "redis+sentinel": sentinels.LOGIN,
    "rediss": _SSL,
    "rediss+cluster": _SSL,
    "rediss+sentinel": sentinels.LOGIN | sentinels.WITHOUT_TLS | _SSL,
    "unix": {"db": "[0-9]{1,5}"},
    "sqlite": {},
    "postgresql": {"host": "/[^#,]+", "sslmode": "|".join(SSL_MODES)} | dict.fromkeys(TLS_FILES["postgresql"], _FILE)
    | _LIBPQ,
    "mysql": {"unix_socket": _SOCKET} | dict.fromkeys(_MYSQL, _FILE) | _CHARSET,
    "mariadb": {"unix_socket": _SOCKET} | dict.fromkeys(_MYSQL, _FILE) | _CHARSET,
})  # fmt: skip
_SAFE_HOST = r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d+)?"
_DATABASE = r"/[\w$.%-]{1,192}"
#: the part of a URL that may be shown, between its login and its options
_SAFE = {
    **dict.fromkeys(("redis", "rediss"), rf"{_SAFE_HOST}(/\d*)?"),
    **dict.fromkeys(sentinels.SCHEMES, rf"{_SAFE_HOST}(,{_SAFE_HOST})*{sentinels.PLACE}"),
    **dict.fromkeys(CLUSTERS, rf"{_SAFE_HOST}(,{_SAFE_HOST})*(/0?)?"),
    **dict.fromkeys(("unix", "sqlite"), r"/[^#]+"),
    "postgresql": rf"({_SAFE_HOST}(,{_SAFE_HOST})*)?{_DATABASE}",
    **dict.fromkeys(("mysql", "mariadb"), rf"({_SAFE_HOST})?{_DATABASE}"),
}


def url(raw: str) -> str:
    """A store's URL with its login percent-encoded, as the drivers need it, and SQLite's path made absolute.

    PostgreSQL's hosts are before the database, also where they were given as ``?host=``. Raises ``ValueError``.
    """
    scheme, _, rest = raw.partition("://")
    if driver := _DRIVER.fullmatch(scheme):
        scheme = driver[1]
    elif scheme == _POSTGRES:
        scheme = "postgresql"
    elif valkey := _VALKEY.fullmatch(scheme):
        scheme = f"redis{valkey[1]}{valkey[2] or ''}"
    if _CLUSTER.fullmatch(scheme):
        raise ValueError("names a cluster: write redis+cluster://HOST:PORT,HOST/")
    if _SENTINEL.fullmatch(scheme):
        raise ValueError("names a sentinel: write redis+sentinel://HOST:26379,HOST,HOST/NAME/0")
    if scheme not in _OPTIONS:
        raise ValueError(
            "must begin with redis://, rediss://, unix://, redis+cluster://, sqlite:///, postgresql://, mysql:// or mariadb://"
        )
    if scheme == "sqlite":
        return _file(rest)
    if scheme == "postgresql":
        rest = _with_hosts_first(rest)
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    login, at, host = authority.rpartition("@")
    place, _, query = rest[len(authority) :].partition("?")
    if "@" in login or ("@" in place + query and (authority or scheme != "unix")):
        raise ValueError("has one @ too many: in a password write @ / ? as %40 %2F %3F")
    _check_place(scheme, host, place, _options(query, scheme))
    # urlsplit would end the host at a raw # and fail on brackets; a % may already be an escape.
    return f"{scheme}://{quote(login, safe=':%!$&*+,;=~')}{at}{host}{rest[len(authority) :]}"


def within(folder: Path, raw: str) -> str:
    """The URL, unchanged, except that the relative path of an SQLite file starts in this folder."""
    start, _, path = raw.partition(":///")
    plain = unquote_to_bytes(path)
    if (
        not re.fullmatch(r"sqlite(\+[a-z0-9_]+)?", start)
        or not plain
        or plain.startswith((b"/", b":memory:", b"file:"))
    ):
        return raw
    return f"{start}:///{quote_from_bytes(os.fsencode(folder))}/{path}"


def kind_of(url: str) -> str:
    """The kind of store, by the URL's scheme: ``redis`` or ``sql``."""
    return "redis" if scheme_of(url) in REDIS else "sql"


def is_cluster(url: str) -> bool:
    """Whether the URL names nodes of a Redis Cluster."""
    return scheme_of(url) in CLUSTERS


def nodes_of(url: str) -> list[tuple[str, int]]:
    """The hosts and ports of a URL with one or several; a socket's host is empty."""
    usual = _PORTS.get(scheme_of(url), _PORTS["redis"])
    parts = [urlsplit(f"redis://{host}") for host in _parts_of(url)[1].split(",")]
    return [(part.hostname or "", part.port or usual) for part in parts]


def of_each_node(url: str) -> list[str]:
    """For each node its URL, with the login and the options of all."""
    login, hosts, rest = _parts_of(url)
    scheme = scheme_of(url).removesuffix("+cluster")
    return [f"{scheme}://{login}{host}{rest}" for host in hosts.split(",")]


def of_one_node(url: str) -> str:
    """The URL of the first node alone, with the login and the options of all."""
    return of_each_node(url)[0]


def bracketed(host: str) -> str:
    """The host as it stands before a port: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


def folds_keys(url: str) -> bool:
    """Whether the store's collations treat keys as equal that differ in case, accents or trailing spaces."""
    return scheme_of(url) in ("mysql", "mariadb")


def scheme_of(url: str) -> str:
    """The scheme, which precedes ``://``."""
    return url.partition("://")[0]


def database_of(url: str) -> str:
    """The database's name, or the path of SQLite's file, without escapes."""
    return os.fsdecode(unquote_to_bytes(urlsplit(url).path[1:]))


def options_of(url: str) -> dict[str, str]:
    """The options after the ``?``, without escapes."""
    return dict(parse_qsl(url.partition("?")[2]))


def place_of(url: str) -> str:
    """An id of the store that the URL leads to: the same for each way to write the URL, and without its login."""
    if is_cluster(url):
        return " ".join(["redis cluster", *sorted(f"{host}:{port}" for host, port in nodes_of(url))])
    if sentinels.is_of_sentinels(url):
        found = sentinels.parsed(url)
        return f"redis sentinel {found.place} {found.database}"
    parts, options = urlsplit(of_one_node(url)), options_of(url)  # several hosts in brackets would be refused
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if parts.scheme == "sqlite":
        return f"sqlite {os.path.realpath(path[1:])}"
    if parts.scheme == "unix":
        return f"redis {os.path.realpath(path)} {int(options.get('db', 0))}"
    kind = {"rediss": "redis", "mariadb": "mysql"}.get(parts.scheme, parts.scheme)
    socket = options.get("host") or options.get("unix_socket")
    server = f"{os.path.realpath(socket) if socket else parts.hostname} {parts.port or _PORTS[parts.scheme]}"
    if len(nodes := nodes_of(url)) > 1:
        server = " ".join(sorted(f"{host}:{port}" for host, port in nodes))
    database = path[1:] or "0"
    # PostgreSQL's `options` can choose a schema: other tables of the same names.
    return f"{kind} {server} {database} {options.get('options', '')}".rstrip()


def has_password(url: str) -> bool:
    """Whether the URL holds a password: of its login, or for sentinels."""
    login = url.partition("://")[2].rpartition("@")[0]
    is_for_sentinels = "sentinel_password" in options_of(url)
    return is_for_sentinels or (scheme_of(url) != "sqlite" and bool(login.partition(":")[2]))


def masked(url: str) -> str:
    """The URL to show to people: without its login and options; ``***`` if it is malformed and might hide one."""
    scheme, _, rest = url.partition("://")
    login, _, place = rest.rpartition("@")
    place, mark, _ = place.partition("?")
    if not re.fullmatch(_SAFE.get(scheme, "(?!)"), place) or (login and scheme == "sqlite"):
        return "***"
    return f"{scheme}://{'***@' if login else ''}{place}{'?***' if mark else ''}"


def _parts_of(url: str) -> tuple[str, str, str]:
    """The login with its @, the hosts, and what follows them."""
    rest = url.partition("://")[2]
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    login, at, hosts = authority.rpartition("@")
    return f"{login}{at}", hosts, rest[len(authority) :]


def _with_hosts_first(rest: str) -> str:
    """What follows ``postgresql://``, with the hosts of ``?host=`` where others have theirs, before the database."""
    start, mark, query = rest.partition("?")
    pairs = query.split("&")
    hosts = [pair for pair in pairs if re.fullmatch(f"host={_HOSTS}", unquote(pair))]
    login, slash, database = start.rpartition("/")
    if not hosts:
        return rest
    if login and not login.endswith("@"):
        raise ValueError("has hosts before its database and a host= after the ?: give all of them in one place")
    named = ",".join(unquote(pair).removeprefix("host=") for pair in hosts)
    others = "&".join(pair for pair in pairs if pair not in hosts)
    return f"{login}{named}{slash}{database}{mark if others else ''}{others}"


def _file(rest: str) -> str:
    path, mark, _ = rest.partition("?")
    plain = os.fsdecode(unquote_to_bytes(path[1:]))
    if not path.startswith("/") or plain in ("", ":memory:") or plain.startswith("file:"):
        raise ValueError("names no file (a queue in memory ends with its process): write sqlite:///PATH")
    if mark or "\0" in plain or "\n" in plain or plain.endswith("/"):
        raise ValueError("is not the path of a file; a ? in it is written %3F, as sqlite:// takes no options")
    try:
        return f"sqlite:///{quote_from_bytes(os.fsencode(Path(plain).absolute()))}"
    except OSError:
        raise ValueError("is a relative path, and there is no working directory") from None


def _check_place(scheme: str, host: str, place: str, options: Mapping[str, str]) -> None:
    if scheme == "unix":
        _check_socket(host, place)
    elif scheme in SERVERS:
        _check_server(scheme, host, place, options)
    elif scheme in sentinels.SCHEMES:
        _check_sentinels(host, place)
    elif scheme in CLUSTERS:
        _check_nodes(host, place)
    elif "," in host + place:
        raise ValueError("names several servers: write redis+sentinel://HOST,HOST/NAME/0 or redis+cluster://HOST,HOST/")
    else:
        _check_host(host)
        if not re.fullmatch("(/[0-9]{0,5})?", place):
            raise ValueError("its database is not a number from 0 to 99999, as in redis://host:6379/0")


def _check_sentinels(hosts: str, place: str) -> None:
    for host in hosts.split(","):
        _check_host(host)
    if not re.fullmatch(sentinels.PLACE, place):
        raise ValueError("names no primary, or a wrong database, as in redis+sentinel://HOST,HOST,HOST/NAME/0")


def _check_nodes(hosts: str, place: str) -> None:
    for host in hosts.split(","):
        _check_host(host)
    if place not in ("", "/", "/0"):
        raise ValueError("names a database, and a cluster has none but 0: redis+cluster://HOST:PORT,HOST/")


def _check_server(scheme: str, host: str, database: str, options: Mapping[str, str]) -> None:
    if "," in host:
        _check_hosts(scheme, host.split(","), options)
    elif not options.keys() & {"host", "unix_socket"} or not re.fullmatch(r"(localhost)?(:[0-9]{1,5})?", host):
        _check_host(host)
    if options.get("target_session_attrs", "any") not in ("any", *_WRITING):
        raise ValueError("has target_session_attrs that lead to a standby, where no job can be written: read-write")
    if not re.fullmatch(_DATABASE, database):
        raise ValueError("names no database, as in postgresql://USER:PASSWORD@HOST/DATABASE")


def _check_hosts(scheme: str, hosts: list[str], options: Mapping[str, str]) -> None:
    if scheme != "postgresql":
        raise ValueError("names several hosts, and this driver takes one: give a name that leads to the primary")
    if "" in hosts:
        raise ValueError("has an empty host between its commas")
    for host in hosts:
        _check_host(host)
    if len(set(nodes_of(f"{scheme}://{','.join(hosts)}/"))) < len(hosts):
        raise ValueError("names a host twice")
    if "host" in options:
        raise ValueError("has hosts and a socket: give the one or the other")
    if options.get("target_session_attrs", _WRITING[0]) not in _WRITING:
        raise ValueError("has several hosts and target_session_attrs that may lead to a standby: read-write or primary")


def _check_host(host: str) -> None:
    try:
        parts = urlsplit(f"redis://{host}")
        is_good = parts.port != 0 and re.fullmatch(r"[A-Za-z0-9_.:-]+", parts.hostname or "")
    except ValueError:
        is_good = None
    if not is_good or "#" in host:
        raise ValueError("has no host, or a port not from 1 to 65535 (an IPv6 address stands in brackets: [::1])")


def _check_socket(host: str, path: str) -> None:
    if host or "#" in path or not 2 <= len(unquote_to_bytes(path)) <= LONGEST_SOCKET_PATH:
        raise ValueError(f"is not a path of 2 to {LONGEST_SOCKET_PATH} bytes, as in unix:///run/redis.sock")


def _options(query: str, scheme: str) -> dict[str, str]:
    pairs = [(key, value) for key, _, value in (pair.partition("=") for pair in query.split("&") if pair)]
    known, options = _OPTIONS[scheme], dict(pairs)
    if len(options) < len(pairs) or not all(re.fullmatch(known.get(key, "(?!)"), value) for key, value in pairs):
        takes = ", ".join(known) or "none"
        only = " (ssl_cert_reqs only as required)" if "ssl_cert_reqs" in known else ""
        raise ValueError(f"has a wrong option after the ?; {scheme}:// takes {takes}{only}")
    return options
