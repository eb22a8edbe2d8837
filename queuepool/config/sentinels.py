"""URLs of a primary that Sentinels name: ``redis+sentinel://USER:PASSWORD@HOST:26379,HOST,HOST/NAME/0``.

The login is that of the servers with the jobs; the one of the sentinels stands in the options.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

#: the schemes, and those by which the servers themselves are reached
SCHEMES = {"redis+sentinel": "redis", "rediss+sentinel": "rediss"}
#: the options for the sentinels; ``sentinel_tls=0``: no TLS to them, though the servers have it
LOGIN = dict.fromkeys(("sentinel_user", "sentinel_password"), "[^#&]+")
WITHOUT_TLS = {"sentinel_tls": "[01]"}
#: the path of such a URL
PLACE = r"/(?P<name>[A-Za-z0-9_.-]{1,100})(/(?P<database>[0-9]{0,5}))?"
_PORT = 26379


class SentinelUrl(NamedTuple):
    """What such a URL says, without the login of the servers."""

    sentinels: tuple[tuple[str, int], ...]
    name: str
    database: int
    #: the login and the options by which the sentinels are reached
    user: str | None
    password: str | None
    scheme: str
    tls: str

    @property
    def place(self) -> str:
        """An id of the primary, whichever way the URL is written."""
        seeds = " ".join(sorted(f"{host}:{port}" for host, port in self.sentinels))
        return f"{self.name} {seeds}"


def is_of_sentinels(url: str) -> bool:
    """Whether this is such a URL."""
    return url.partition("://")[0] in SCHEMES


def parsed(url: str) -> SentinelUrl:
    """What a valid URL says."""
    scheme, _, rest = url.partition("://")
    authority, place, options = _parts(rest)
    hosts = (urlsplit(f"//{one}") for one in authority.rpartition("@")[2].split(","))
    found = re.fullmatch(PLACE, place)
    assert found
    is_plain = options.get("sentinel_tls") == "0"
    return SentinelUrl(
        sentinels=tuple((one.hostname or "", one.port or _PORT) for one in hosts),
        name=found["name"],
        database=int(found["database"] or 0),
        user=options.get("sentinel_user"),
        password=options.get("sentinel_password"),
        scheme="redis" if is_plain else SCHEMES[scheme],
        tls="" if is_plain else _tls(rest),
    )


def of_servers(url: str) -> str:
    """The URL of a server with the jobs, wherever it is: with the login, the database and TLS of this one."""
    scheme, _, rest = url.partition("://")
    authority, _, _ = _parts(rest)
    login, at, hosts = authority.rpartition("@")
    return f"{SCHEMES[scheme]}://{login}{at}{hosts.split(',')[0]}/{parsed(url).database}?{_tls(rest)}"


def _parts(rest: str) -> tuple[str, str, dict[str, str]]:
    authority, slash, path = rest.partition("/")
    place, _, query = path.partition("?")
    pairs = (pair.partition("=") for pair in query.split("&"))
    return authority, slash + place, {key: unquote(value) for key, _, value in pairs}


def _tls(rest: str) -> str:
    """The options of TLS, as they are."""
    return "&".join(pair for pair in rest.partition("?")[2].split("&") if pair.startswith("ssl_"))
