"""Puts a dashboard together: as an ASGI application to mount, or as the one that ``queuepool web`` serves."""

from __future__ import annotations

import os
from pathlib import Path

from queuepool.config import loader
from queuepool.config.loader import Config
from queuepool.config.secrets import token_in
from queuepool.config.values import Address, address_of
from queuepool.config.web import AUTO, WebSettings, refuse_strangers
from queuepool.errors import ConfigError
from queuepool.web.desk import Desk
from queuepool.web.guard import Access, Doors, Doorway
from queuepool.web.logins import Credentials
from queuepool.web.site import Site
from queuepool.web.visitors import ROLES, UserFile, WebRole

#: names by which a browser on this host reaches it
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def dashboard(config: Config | Path | str | None = None, *, access: Access | None = None) -> Doorway:
    """The dashboard as an ASGI application, to be mounted in another one.

    ``config``: a configuration's file; without one, that in QUEUEPOOL_CONFIG, else the defaults. ``access`` gets the
    ASGI scope of each request, in a thread, and returns what the visitor may do: ``"viewer"``, ``"operator"``,
    ``"admin"``, or a name and one of these, or ``None``, for which nothing is there (404). Without it, the users and
    the token of ``[web]`` are asked for. Raises ``ConfigError``, also if there is neither.
    """
    found = config if isinstance(config, Config) else loader.load(_path(config))
    credentials = None if access else _credentials(found.web, None)
    if credentials and not (found.web.users or found.web.token):
        raise ConfigError("[web]", "say who may see the dashboard: give access, or set users or token")
    hosts = frozenset(found.web.hosts) or None
    return _made(found, Doors(hosts, "", credentials, access))


def own_dashboard(config: Config) -> Doorway:
    """As ``queuepool web`` serves it. Raises ``ConfigError`` if strangers could come in."""
    web, address = config.web, address_of(config.web.listen)
    refuse_strangers(web)
    return _made(config, Doors(_hosts(web, address), web.path, _credentials(web, address), None))


def _path(config: Path | str | None) -> Path | None:
    given = config or os.environ.get("QUEUEPOOL_CONFIG")
    return Path(given) if given else None


def _hosts(web: WebSettings, address: Address) -> frozenset[str]:
    own = f"[{address.host}]" if address.is_v6 else address.host
    return frozenset((*_LOOPBACK, *web.hosts, *([own] if own else [])))


def _credentials(web: WebSettings, address: Address | None) -> Credentials:
    users = UserFile(web.users) if web.users else None
    if users:
        users.read()  # what is wrong with it is told now
    is_private = address is not None and address.is_private and not users
    # Behind a proxy, everybody has an address of this host.
    seen = {AUTO: WebRole.VIEWER} if not web.hosts else {}
    stranger = {**ROLES, **seen}.get(web.anonymous) if is_private else None
    try:
        return Credentials(users, token_in(web.token), stranger, is_direct_only=web.anonymous == AUTO)
    except ValueError as error:
        raise ConfigError("[web] token", str(error)) from error


def _made(config: Config, doors: Doors) -> Doorway:
    desk = Desk(config)
    return Doorway(Site(desk).app, doors, desk.threads, desk.close)
