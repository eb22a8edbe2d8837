"""The style and the script, held in memory, at addresses that change with their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


class StaticFile(NamedTuple):
    """A file, at ``/static/`` and its address."""

    address: str
    type: str
    content: bytes


@cache
def static_files() -> Mapping[str, StaticFile]:
    """All of them, by their names."""
    found = {}
    for entry in sorted(files("queuepool.web").joinpath("static").iterdir(), key=lambda one: one.name):
        stem, _, kind = entry.name.rpartition(".")
        content = entry.read_bytes()
        address = f"{stem}.{hashlib.sha256(content).hexdigest()[:12]}.{kind}"
        found[entry.name] = StaticFile(address, _TYPES[kind], content)
    return found
