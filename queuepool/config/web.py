"""The section ``[web]``: where the dashboard listens, who may see it, and what of the jobs it shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from queuepool.config import secrets, values
from queuepool.config.setting import setting
from queuepool.config.values import address_of, one_of
from queuepool.errors import ConfigError

KIND = "web"
#: of ``anonymous``
AUTO = "auto"
#: a name or an IP address, perhaps with a port
_HOST = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def address(raw: str) -> str:
    """The checked text of an address."""
    if not raw:
        raise ValueError("must not be empty: write 127.0.0.1:8420 or unix:/PATH")
    return values.listen(raw)


def prefix(raw: str) -> str:
    """The path below which the pages are, without a slash at its end; may be empty."""
    found = "" if raw == "/" else raw.removesuffix("/")
    if found and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+", found):
        raise ValueError(f"{values.shown(raw)} is not a path like /queuepool")
    return found


def hosts(raw: str) -> tuple[str, ...]:
    """Names of hosts, separated by commas; may be empty."""
    names = tuple(part.strip(" \t").lower() for part in raw.split(",")) if raw else ()
    for name in names:
        if not _HOST.fullmatch(name):
            raise ValueError(f"{values.shown(name)} is not a host's name like queues.example.com")
    return names


def words(raw: str) -> tuple[str, ...]:
    """Words in lower case, separated by commas; may be empty."""
    found = tuple(part.strip(" \t").lower() for part in raw.split(",")) if raw else ()
    if not all(re.fullmatch(r"[a-z0-9_-]{1,64}", word) for word in found):
        raise ValueError("has a part that is not a word of A-Z a-z 0-9 _ -")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """The dashboard's settings; times in seconds."""

    #: Address of `queuepool web`: HOST:PORT, or unix:/PATH. One that other hosts can reach needs `users` or `token`.
    listen: str = setting("127.0.0.1:8420", address, "ADDRESS", "Address to listen on: HOST:PORT or unix:/PATH")
    #: Path below which a proxy shows the pages: /queuepool. Whether the proxy strips it makes no difference.
    path: str = setting("", prefix, "PATH", "Path below which a proxy shows the pages")
    #: Names under which browsers may reach it, besides localhost, the loopback addresses and the address itself:
    #: queues.example.com. Requests for any other name are refused.
    hosts: tuple[str, ...] = setting((), hosts)
    #: File of those who may log in, each line NAME:ROLE:HASH; `queuepool web --add-user NAME` adds a line.
    users: Path | None = setting(None, values.path, "FILE", "File of those who may log in")
    #: Token by which programs read: Authorization: Bearer TOKEN; or /PATH of a file that holds it, which only the
    #: dashboard reads. Better set in QUEUEPOOL_WEB_TOKEN.
    token: str = setting("", secrets.token, is_secret=True)
    #: What who has not logged in may do where only this host can connect and there is no file of users: none, viewer =
    #: see, operator = pause, retry and cancel too, admin = all; auto = see, though not through a proxy.
    anonymous: str = setting(AUTO, one_of(AUTO, "none", "viewer", "operator", "admin"))
    #: What is shown of payloads: yes, keys = only the names of arguments, or no.
    data: str = setting("yes", one_of("yes", "keys", "no"))
    #: Arguments whose names contain one of these words are shown without their values.
    mask: tuple[str, ...] = setting(("password", "token", "secret", "authorization", "card"), words)
    #: Seconds after which a page in the foreground is renewed; 0 = never.
    refresh: float = setting(2.0, values.seconds)


def refuse_strangers(web: WebSettings) -> None:
    """Raise ``ConfigError`` if anybody on other hosts could see the dashboard."""
    if not (address_of(web.listen).is_private or web.users or web.token):
        why = f"{web.listen} is open to other hosts: set users (queuepool web --add-user NAME) or token first"
        raise ConfigError("[web] listen", why)
    if web.hosts and not (web.users or web.token) and web.anonymous == AUTO:
        why = (
            f"by {web.hosts[0]} others come in: set users (queuepool web --add-user NAME) or token first, or say in "
            "anonymous what they may do"
        )
        raise ConfigError("[web] hosts", why)
