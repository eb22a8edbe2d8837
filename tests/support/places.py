"""Where a server runs: on this host, or on one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """Where a process runs: what its command is preceded by, and the address by which others reach it."""

    preface: Sequence[str]
    address: str


HERE = Place((), "127.0.0.1")
