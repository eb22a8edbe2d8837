"""The little of HTTP/1.1 that the web process needs: the first line of a request, and a whole response."""

from __future__ import annotations

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple

#: bytes of a request's head
MAX_HEAD = 16384
END_OF_HEAD = b"\r\n\r\n"
_FIRST_LINE = re.compile(rb"([A-Z]{1,20}) (/[!-~]*) HTTP/1\.[01]\r\n")
TEXT = "text/plain; charset=utf-8"


class Request(NamedTuple):
    """``path`` is without the query."""

    method: str
    path: str

    @classmethod
    def of(cls, head: bytes) -> Request:
        """The request that begins with this head. Raises ``ValueError`` when it is none."""
        found = _FIRST_LINE.match(head)
        if not found:
            raise ValueError("not a request of HTTP/1")
        return cls(found[1].decode(), found[2].decode().partition("?")[0])


class Response(NamedTuple):
    """A response, after which the connection is closed."""

    status: HTTPStatus
    body: bytes
    type: str = TEXT
    #: further lines of the head
    fields: tuple[str, ...] = ()

    @classmethod
    def plain(cls, status: HTTPStatus, words: str = "", *fields: str) -> Response:
        """A line of text, by default the status in words."""
        return cls(status, f"{words or status.phrase}\n".encode(), TEXT, fields)

    def written(self, *, with_body: bool = True) -> bytes:
        """As bytes; the response to HEAD is that to GET without its body."""
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Date: {formatdate(usegmt=True)}",
            f"Content-Type: {self.type}",
            f"Content-Length: {len(self.body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *self.fields,
        ]
        return "\r\n".join([*lines, "", ""]).encode() + (self.body if with_body else b"")
