"""The contract of what pools keep of their past: texts in buckets of time, one writer a text.

A repeated write is the same write, so it may be repeated after a lost reply.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

#: most bytes of a text, and most texts of a bucket, that are read
MAX_BYTES, MAX_TEXTS = 65536, 1000


class Kept(NamedTuple):
    """One text; ``bucket`` is the Unix second at which its time begins."""

    bucket: int
    writer: str
    text: bytes


class Found(NamedTuple):
    """What was read, and how much was left out as it was too large or too many."""

    texts: list[Kept]
    ignored: int


class History(Protocol):
    """The history in one store. Every verb may raise ``StoreDown`` and ``StoreError``."""

    def keep(self, grain: str, bucket: int, writer: str, text: str, lifetime: float) -> None:
        """Keep this writer's text of a bucket, in place of its earlier one, for about ``lifetime`` seconds from now.

        ``grain`` names a length of buckets.
        """

    def sweep(self) -> None:
        """Remove what has expired, where the store does not do so itself."""

    def kept(self, grain: str, buckets: range) -> Found:
        """The texts of these buckets, as far as they have not expired."""
