"""What every request passes before it is routed: host, prefix, visitor, origin, size, time; and the answers' headers.

It stands around the pages as ASGI, so it also holds where they are mounted in another application.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from queuepool.errors import ConfigError
from queuepool.web.logins import Credentials
from queuepool.web.threads import WebThreads
from queuepool.web.visitors import Visitor

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
#: what an application says of a visitor: see ``Visitor.of``
Access = Callable[[AsgiScope], Visitor | tuple[str, str] | str | None]
#: most bytes of a request's body, and seconds for all of a request: a page reads stores for as long as a person waits
MAX_BODY, DEADLINE = 64 * 1024, 20.0
#: most characters of a path and of a query, and most header fields
_MAX_QUERY, _MAX_FIELDS = 4096, 100
#: logins that wait at once, of users (``True``) and of who is none; and seconds after which a wrong one is answered, so
#: that nobody sees whether there is such a user
_MAX_LOGINS, _WRONG_AFTER = {True: 64, False: 16}, 0.3
#: in the scope of a request as the server has made it, from when its visitor is known: see ``PromptProtocol``
LET_IN = "queuepool.let_in"
READING = ("GET", "HEAD")
METHODS = (*READING, "POST")
_ROOT = re.compile(r"(/[A-Za-z0-9_~%-][A-Za-z0-9_.~%-]*)*")
#: what a proxy adds to a request that it passes on
_OF_PROXIES = re.compile(rb"forwarded|x-forwarded-.*|x-real-ip|via")
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
#: what was sent behind a request that is refused so is not read: guesses would keep the connection from others
_CLOSE = (b"connection", b"close")


class Refusal(Exception):
    """The request is answered with this status and these words, and goes no further."""

    def __init__(self, status: int, words: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(words)
        self.status = status
        self.words = words
        self.headers = headers


class WrongEntry(Refusal):
    """What was entered in the field of this name is wrong: the form is shown again, with all that was entered."""

    def __init__(self, name: str, words: str, status: int = 400) -> None:
        super().__init__(status, f"{name}: {words}")
        self.name = name
        self.why = words


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
        #: logins that wait, of users (``True``) and of others
        self._logins = {True: 0, False: 0}
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
            await self._answer(scope, receive, _Answer(send, scope))
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
        _check_framing(scope, fields)
        if scope["method"] in READING:
            check_reader(fields)
        inner = {**scope, **_placed(scope, self._doors.prefix)}
        visitor = await self._visitor(scope, fields)
        scope[LET_IN] = True
        body = b""
        if scope["method"] not in READING:
            check_origin(fields, scope.get("scheme", "http"))
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
        try:
            if headers:
                found = await self._logged_in(credentials, headers[0], (scope.get("client") or ("",))[0])
            else:
                found = credentials.stranger(is_direct=not fields.have(_OF_PROXIES))
        except ConfigError as error:
            _log.error("nobody can log in: %s", error)
            raise Refusal(503, "nobody can log in at the moment; the log says why") from error
        if found is None:
            scheme = b'Basic realm="queuepool", charset="UTF-8"' if credentials.asks else b"Bearer"
            raise Refusal(401, "log in first", (b"www-authenticate", scheme), _CLOSE)
        return found

    async def _logged_in(self, credentials: Credentials, header: bytes, address: str) -> Visitor | None:
        look = await self._threads.look(lambda: credentials.look(header))
        if look.visitor:
            return look.visitor
        if credentials.is_blocked(header, address) or self._logins[look.is_open] >= _MAX_LOGINS[look.is_open]:
            raise Refusal(429, "too many wrong passwords: wait for a minute", (b"retry-after", b"60"), _CLOSE)
        self._logins[look.is_open] += 1
        try:
            return await self._tried(credentials, header, address, is_open=look.is_open)
        finally:
            self._logins[look.is_open] -= 1

    async def _tried(self, credentials: Credentials, header: bytes, address: str, *, is_open: bool) -> Visitor | None:
        """Only a user's password is hashed: who makes up names must not keep the processor busy."""
        began = time.monotonic()
        found: Visitor | None = None
        if is_open:
            found = await self._threads.check(lambda: credentials.check(header, address))
        else:
            credentials.note_wrong(header, address)
        if found is None:
            await asyncio.sleep(max(began + _WRONG_AFTER - time.monotonic(), 0.0))
        return found


class Fields:
    """The header fields of a request."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._headers = [(name.lower(), value) for name, value in headers]

    def all(self, name: bytes) -> list[bytes]:
        """The values of all fields of this name."""
        return [value for found, value in self._headers if found == name]

    def have(self, names: re.Pattern[bytes]) -> bool:
        """Whether there is a field of such a name."""
        return any(names.fullmatch(found) for found, _ in self._headers)

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


def check_origin(fields: Fields, scheme: str) -> None:
    """Raise ``Refusal`` unless a page of ours has sent this, or a program: with a token, or as JSON.

    A page of another site can send neither without asking first (CORS), to which we do not agree.

    As Go's CrossOriginProtection (1.25): browsers send Sec-Fetch-Site to trustworthy URLs only, and Origin with every
    POST. ``scheme``: that of the request, unless a proxy says what the browser has used.
    """
    site, origin = fields.text(b"sec-fetch-site"), fields.text(b"origin")
    if site:
        is_ours = site == "same-origin"
    elif origin:
        is_ours = _is_own(origin, fields, scheme)
    else:
        is_json = fields.text(b"content-type").partition(";")[0].strip().lower() == "application/json"
        is_ours = is_json or fields.text(b"authorization")[:7].lower() == "bearer "
    if not is_ours:
        raise Refusal(403, "this was not sent by a page of the dashboard")


def check_reader(fields: Fields) -> None:
    """Raise ``Refusal`` if a page of another site has something of ours read that nobody follows a link to.

    It could not see that, but have this work for it: on a browser's own host, where nobody logs in, any site could.
    """
    is_followed = fields.text(b"sec-fetch-mode") == "navigate" and fields.text(b"sec-fetch-dest") in ("", "document")
    if fields.text(b"sec-fetch-site") == "cross-site" and not is_followed:
        raise Refusal(403, "this was not sent by a page of the dashboard")


def _is_own(origin: str, fields: Fields, scheme: str) -> bool:
    """Whether the origin is ours. A proxy may speak TLS and not say so, but no page of http is ours behind https."""
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    said = fields.text(b"x-forwarded-proto").partition(",")[0].strip().lower()
    schemes = ("https", said or scheme)
    return found.scheme in schemes and found.netloc.lower() == fields.text(b"host").lower()


def _check_framing(scope: AsgiScope, fields: Fields) -> None:
    """Raise ``Refusal`` where a proxy may see another end of the body than the server does, and so another request."""
    if fields.all(b"transfer-encoding") and (fields.all(b"content-length") or scope.get("http_version") == "1.0"):
        raise Refusal(400, "Transfer-Encoding is of HTTP/1.1, and goes with no Content-Length", _CLOSE)


def _check_size(scope: AsgiScope) -> None:
    """Raise ``Refusal``: a server's own limits are for what it has to wait for."""
    if re.search("[\0-\x1f\x7f]", scope["path"]):
        raise Refusal(404, "there is no such page")
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
    whole = f"{path}/" if path == root else path
    if not whole.startswith("/"):
        raise Refusal(400, "a request has a path, and no address of another host")
    return {"root_path": root, "path": whole}


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
            break
    if length and len(found) != int(length):  # a WSGI server hands over what has come
        raise Refusal(400, "the body was cut off")
    return found


async def _nothing_more() -> Message:
    """What follows the body: the client stays until it has its answer."""
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}


class _Answer:
    """Sends an answer with the headers of all; ``is_json``: refusals, too, are for a program."""

    def __init__(self, send: Send, scope: AsgiScope) -> None:
        self._send = send
        self._method = scope["method"]
        #: whether it is for a program
        self._is_json = "/api/v1/" in scope["path"]
        #: whether the connection is for this request and those behind it: HTTP/2 has others on it, and no such header
        self._may_close = str(scope.get("http_version", "")).startswith("1")
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
        """Answer with its words, unless an answer has begun."""
        if self._has_begun:
            return
        kind, text = b"text/plain; charset=utf-8", refusal.words
        if self._is_json:
            kind, text = b"application/json", json.dumps({"version": 1, "error": refusal.words})
        body = f"{text}\n".encode()
        about = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        own = [one for one in refusal.headers if one != _CLOSE or self._may_close]
        headers = [*about, *own, *HEADERS, _NO_STORE]
        await self._send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": b"" if self._method == "HEAD" else body})
