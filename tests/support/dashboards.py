"""A dashboard on a test's store, and a browser that asks it as a real one would, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode

from queuepool.config.loader import Config
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.config.web import WebSettings
from queuepool.web.dashboard import dashboard
from queuepool.web.desk import Desk
from queuepool.web.guard import Doors, Doorway
from queuepool.web.site import Site as Pages
from tests.support.eventually import eventually
from tests.support.pools import Site

#: what a browser sends with a form of the page itself
FROM_OUR_PAGE = {"host": "localhost:8420", "sec-fetch-site": "same-origin"}


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Browser:
    """Asks an ASGI application; ``headers`` are sent with each request."""

    app: Any
    headers: Mapping[str, str] = field(default_factory=lambda: dict(FROM_OUR_PAGE))
    root_path: str = ""
    address: str = "127.0.0.1"

    def get(self, path: str, /, method: str = "GET", **headers: str) -> Got:
        return self.ask(method, path, b"", headers)

    def facts(self, path: str) -> Any:
        """The facts of a page, from its twin."""
        got = self.get(f"/api/v1{path}")
        assert got.status == 200, got.text
        return got.json

    def ended(self, errand: str) -> Any:
        """The facts of an action with many jobs, by its id, at its end: it goes on after the answer if it is long."""

        def look() -> Any:
            found = self.facts(f"/errands/{errand}")["errand"]
            return found["state"] != "running" and found

        return eventually(look)

    def post(self, path: str, form: Mapping[str, Any] | None = None, /, **headers: str) -> Got:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, urlencode(form or {}, doseq=True).encode(), {**kind, **headers})

    def send(self, path: str, facts: Any, /, **headers: str) -> Got:
        """A JSON body."""
        return self.ask("POST", path, json.dumps(facts).encode(), {"content-type": "application/json", **headers})

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Got:
        """``headers`` beside the usual ones; an empty one is left out."""
        fields = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in fields.items() if value]
        return asyncio.run(self.exchange(method, path, [body], pairs))

    async def exchange(
        self, method: str, path: str, body: Sequence[bytes], headers: Sequence[tuple[bytes, bytes]]
    ) -> Got:
        """The bare exchange: these header fields, and the body in these parts."""
        raw, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": self.root_path + unquote(raw), "raw_path": raw.encode(),
            "query_string": query.encode(), "root_path": self.root_path, "headers": list(headers),
            "client": (self.address, 4711), "server": ("127.0.0.1", 8420), "state": {},
        }  # fmt: skip
        parts, sent = iter(body), list[dict[str, Any]]()
        left = len(body)

        async def receive() -> dict[str, Any]:
            nonlocal left
            left -= 1
            return {"type": "http.request", "body": next(parts, b""), "more_body": left > 0}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start, *rest = sent
        found = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return Got(start["status"], found, b"".join(message.get("body", b"") for message in rest))


def config_of(site: Site, *queues: str, **web: Any) -> Config:
    """The configuration of one pool on the site's store, whose board is where ``site.pool`` has it."""
    return config_on([site.connection], site, *queues, **web)


def config_on(connections: Sequence[ConnectionSettings], site: Site, *queues: str, **web: Any) -> Config:
    """The same with a pool on each of these connections; the first one's has the name that ``site.pool`` gives."""
    pools = tuple(
        PoolSettings(
            name=f"pool{number}" if number else "default", connection=one, queues=queues or ("default",),
            runtime_dir=site.path / "run",
        )
        for number, one in enumerate(connections)
    )  # fmt: skip
    return Config(pools, {one.name: one for one in connections}, None, web=WebSettings(**web))


@contextmanager
def opened(config: Config, role: str | None = "admin") -> Iterator[Browser]:
    """A browser at a dashboard whose visitor has this role."""
    with mounted(config, lambda scope: role and ("eve", role)) as app:
        yield Browser(app)


@contextmanager
def impatient(config: Config) -> Iterator[Browser]:
    """A browser at a dashboard that waits for no action."""
    desk = Desk(config)
    pages = Pages(desk, patience=0.0).app
    try:
        yield Browser(Doorway(pages, Doors(None, "", None, lambda scope: ("eve", "admin")), desk.threads, desk.close))
    finally:
        desk.close()


@contextmanager
def mounted(config: Config, access: Callable[..., Any]) -> Iterator[Doorway]:
    app = dashboard(config, access=access)
    try:
        yield app
    finally:
        app.close()
