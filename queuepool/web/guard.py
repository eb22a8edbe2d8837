"""What every request passes before it is routed: host, prefix, visitor, origin, size, time; and the answers' headers.

It stands around the pages as ASGI, so it also holds where they are mounted in another application.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from queuepool.errors import ConfigError
from queuepool.web.threads import WebThreads
from queuepool.web.visitors import Credentials, Visitor

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
#: what an application says of a visitor: see ``Visitor.of``
Access = Callable[[AsgiScope], Visitor | tuple[str, str] | str | None]
#: most bytes of a request's body, and seconds for all of a request: a page reads stores for as long as a person waits
MAX_BODY, DEADLINE = 64 * 1024, 20.0
#: most characters of a path and of a query, most header fields, and most passwords that wait to be checked
_MAX_QUERY, _MAX_FIELDS, _MAX_CHECKS = 4096, 100, 16
READING = ("GET", "HEAD")
METHODS = (*READING, "POST")
_ROOT = re.compile(r"(/[A-Za-z0-9_~%-][A-Za-z0-9_.~%-]*)*")
_log = logging.getLogger("queuepool")
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: the headers of every answer
HEADERS = (
    (b"content-security-policy", _CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NO_STORE = (b"cache-control", b"no-store")


class Refusal(Exception):
    """The request is answered with this status and these words, and goes no further."""

    def __init__(self, status: int, words: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(words)
        self.status = status
        self.words = words
        self.headers = headers


class Doors(NamedTuple):
    """Who may come in, and how."""

    #: names in the Host header that are ours; ``None``: the application around us looks after that
    hosts: frozenset[str] | None
    prefix: str
    credentials: Credentials | None
    access: Access | None


class Doorway:
    """The ASGI application around ``pages``, which finds the visitor and the body in the scope."""

    def __init__(self, pages: Asgi, doors: Doors, threads: WebThreads, close: Callable[[], None]) -> None:
        self._pages = pages
        self._doors = doors
        self._threads = threads
        self._checks = 0
        self._close = close

    def close(self) -> None:
        """Close the stores, and stop what is under way after its batch: for an application that ends, or mounts anew.

        Does not wait.
        """
        self._close()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._pages(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _Answer(send, scope["method"]))
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _answer(self, scope: AsgiScope, receive: Receive, answer: _Answer) -> None:
        try:
            async with asyncio.timeout(DEADLINE) as deadline:
                inner = await self._admitted(scope, receive, deadline.when() or math.inf)
                await self._pages(inner, _nothing_more, answer.pass_on)
        except Refusal as refusal:
            await answer.refuse(refusal)
        except TimeoutError:
            await answer.refuse(Refusal(503, f"this took longer than {DEADLINE:.0f} s, and was given up"))

    async def _admitted(self, scope: AsgiScope, receive: Receive, until: float) -> AsgiScope:
        """The scope for the pages. Raises ``Refusal``."""
        fields = Fields(scope["headers"])
        self._check_host(fields)
        if scope["method"] not in METHODS:
            raise Refusal(405, "only GET, HEAD and POST", (b"allow", b", ".join(m.encode() for m in METHODS)))
        _check_size(scope)
        inner = {**scope, **_placed(scope, self._doors.prefix)}
        visitor = await self._visitor(scope, fields)
        body = b""
        if scope["method"] not in READING:
            check_origin(fields)
            body = await _body(fields, receive)
        inner["queuepool"] = Admitted(visitor, fields, body, until)
        return inner

    def _check_host(self, fields: Fields) -> None:
        names = fields.all(b"host")
        if len(names) != 1:
            raise Refusal(400, "a request names one host")
        if self._doors.hosts is not None and not is_one_of(names[0].decode("latin-1").lower(), self._doors.hosts):
            raise Refusal(421, "this is not a name of the dashboard: add it to `hosts` in [web]")

    async def _visitor(self, scope: AsgiScope, fields: Fields) -> Visitor:
        if self._doors.access:
            found = await self._threads.page(lambda: Visitor.of(self._doors.access(scope)))  # type: ignore[misc]
            if found is None:
                raise Refusal(404, "there is no such page")
            return found
        assert self._doors.credentials
        return await self._identified(self._doors.credentials, scope, fields)

    async def _identified(self, credentials: Credentials, scope: AsgiScope, fields: Fields) -> Visitor:
        headers = fields.all(b"authorization")
        if len(headers) > 1:
            raise Refusal(400, "a request has one Authorization")
        header = headers[0] if headers else None
        address = (scope.get("client") or ("",))[0]
        try:
            found = credentials.known(header)
            if found is None and header is not None:
                if credentials.is_blocked(header, address) or self._checks >= _MAX_CHECKS:
                    raise Refusal(429, "too many wrong passwords: wait for a minute", (b"retry-after", b"60"))
                found = await self._checked(credentials, header, address)
        except ConfigError as error:
            _log.error("nobody can log in: %s", error)
            raise Refusal(503, "nobody can log in at the moment; the log says why") from error
        if found is None:
            scheme = b'Basic realm="queuepool", charset="UTF-8"' if credentials.asks else b"Bearer"
            raise Refusal(401, "log in first", (b"www-authenticate", scheme))
        return found

    async def _checked(self, credentials: Credentials, header: bytes, address: str) -> Visitor | None:
        self._checks += 1
        try:
            return await self._threads.check(lambda: credentials.check(header, address))
        finally:
            self._checks -= 1


class Fields:
    """The header fields of a request."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._headers = [(name.lower(), value) for name, value in headers]

    def all(self, name: bytes) -> list[bytes]:
        """The values of all fields of this name."""
        return [value for found, value in self._headers if found == name]

    def text(self, name: bytes) -> str:
        """The value of the first one; empty if there is none."""
        return next((value.decode("latin-1") for found, value in self._headers if found == name), "")


class Admitted(NamedTuple):
    """What the doorway has found out, in the scope's ``queuepool``."""

    visitor: Visitor
    fields: Fields
    body: bytes
    #: when the request is given up, by the event loop's clock
    until: float = math.inf


def is_one_of(host: str, names: frozenset[str]) -> bool:
    """Whether the value of Host is one of these names, or one of them with any port: tunnels have other ports."""
    bare = re.sub(r":[0-9]{1,5}$", "", host)
    return host in names or bare in names


def check_origin(fields: Fields) -> None:
    """Raise ``Refusal`` unless a page of ours has sent this, or a program with a token.

    As Go's CrossOriginProtection (1.25): browsers send Sec-Fetch-Site to trustworthy URLs only, and Origin with every
    POST.
    """
    site, origin = fields.text(b"sec-fetch-site"), fields.text(b"origin")
    if site:
        is_ours = site == "same-origin"
    elif origin:
        is_ours = origin != "null" and urlsplit(origin).netloc.lower() == fields.text(b"host").lower()
    else:
        is_ours = fields.text(b"authorization")[:7].lower() == "bearer "
    if not is_ours:
        raise Refusal(403, "this was not sent by a page of the dashboard")


def _check_size(scope: AsgiScope) -> None:
    """Raise ``Refusal``: a server's own limits are for what it has to wait for."""
    if len(scope["path"]) > _MAX_QUERY or len(scope.get("query_string", b"")) > _MAX_QUERY:
        raise Refusal(414, f"the path or the query has more than {_MAX_QUERY} characters")
    if len(scope["headers"]) > _MAX_FIELDS:
        raise Refusal(431, f"there are more than {_MAX_FIELDS} header fields")


def _placed(scope: AsgiScope, prefix: str) -> dict[str, Any]:
    """The path and the root path, whether a proxy strips the prefix or not. Raises ``Refusal`` for an odd root."""
    root, path = scope.get("root_path", ""), scope["path"]
    if prefix and not root:
        is_whole = path == prefix or path.startswith(f"{prefix}/")
        root, path = prefix, path if is_whole else prefix + path
    if not _ROOT.fullmatch(root) or ".." in root:
        raise Refusal(400, "the pages cannot be below this path")
    return {"root_path": root, "path": f"{path}/" if path == root else path}


async def _body(fields: Fields, receive: Receive) -> bytes:
    """Raises ``Refusal`` for a body that is too large, compressed, or of an odd length."""
    if fields.text(b"content-encoding") not in ("", "identity"):
        raise Refusal(415, "a compressed body is not read")
    length = fields.text(b"content-length")
    if length and (not re.fullmatch(r"[0-9]{1,12}", length) or len(fields.all(b"content-length")) > 1):
        raise Refusal(400, "Content-Length is not a number")
    if length and int(length) > MAX_BODY:
        raise Refusal(413, f"a body has at most {MAX_BODY} bytes")
    found = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400, "the body was cut off")
        found += bytes(message.get("body", b""))
        if len(found) > MAX_BODY:
            raise Refusal(413, f"a body has at most {MAX_BODY} bytes")
        if not message.get("more_body"):
            return found


async def _nothing_more() -> Message:
    """What follows the body: the client stays until it has its answer."""
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}


class _Answer:
    """Sends an answer with the headers of all."""

    def __init__(self, send: Send, method: str) -> None:
        self._send = send
        self._method = method
        self._has_begun = False

    async def pass_on(self, message: Message) -> None:
        """Send a part of the pages' answer."""
        if message["type"] == "http.response.start":
            self._has_begun = True
            own = message.get("headers", [])
            caching = () if any(name == b"cache-control" for name, _ in own) else (_NO_STORE,)
            message = {**message, "headers": [*own, *HEADERS, *caching]}
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with a line of text, unless an answer has begun."""
        if self._has_begun:
            return
        body = f"{refusal.words}\n".encode()
        about = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        headers = [*about, *refusal.headers, *HEADERS, _NO_STORE]
        await self._send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": b"" if self._method == "HEAD" else body})
