"""A dashboard that is served, for a real browser or a real socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from queuepool.config.loader import Config
from queuepool.web.dashboard import own_dashboard
from queuepool.web.guard import Asgi
from queuepool.web.server import serve
from tests.support.redis_server import free_port


@contextmanager
def serving(config: Config) -> Iterator[tuple[str, int]]:
    """The address of a dashboard of its own."""
    with serving_app(own_dashboard(config)) as address:
        yield address


@contextmanager
def serving_app(app: Asgi) -> Iterator[tuple[str, int]]:
    """The real server, in a thread of this process, for any application."""
    stop, is_ready, port = threading.Event(), threading.Event(), free_port()
    listen = f"127.0.0.1:{port}"
    thread = threading.Thread(target=serve, args=(app, listen, stop.is_set, is_ready.set))
    thread.start()
    try:
        assert is_ready.wait(20)
        yield "127.0.0.1", port
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()
