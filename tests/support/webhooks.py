"""A real HTTP server for one test, which keeps what is posted to it and answers as the test says."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


class Hook:
    """The server's URL, and the bodies that it got."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[Any] = []
        self.paths: list[str] = []


def plain(code: int = 200, body: bytes = b"ok", **headers: str) -> Answer:
    """This code, these headers, this body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@contextmanager
def hook(answer: Answer = plain(), certificate: Path | None = None) -> Iterator[Hook]:  # noqa: B008 - it is constant
    """A server that is up until the context ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.paths.append(self.path)
            found.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer(self)

        def do_GET(self) -> None:
            found.paths.append(self.path)
            answer(self)

        def log_message(self, *_: object) -> None:
            """A test prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    found = Hook(f"http{'s' * bool(certificate)}://127.0.0.1:{server.server_address[1]}/hook")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
