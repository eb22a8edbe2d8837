"""A dashboard that is served, for a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from queuepool.config.loader import Config
from queuepool.web.dashboard import own_dashboard
from queuepool.web.server import serve
from tests.support.redis_server import free_port


@contextmanager
def serving(config: Config) -> Iterator[tuple[str, int]]:
    """The real server, in a thread of this process."""
    stop, is_ready, port = threading.Event(), threading.Event(), free_port()
    listen = f"127.0.0.1:{port}"
    app = own_dashboard(replace(config, web=replace(config.web, listen=listen)))
    thread = threading.Thread(target=serve, args=(app, listen, stop.is_set, is_ready.set))
    thread.start()
    try:
        assert is_ready.wait(20)
        yield "127.0.0.1", port
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()
