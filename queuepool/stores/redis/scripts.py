"""The scripts that the server runs: each is its file in ``lua`` with the parts that it includes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

#: how a script is called within one of these parts, and the line in whose place it stands there
KEEP, STEPS, MEMBERS, PLACES, RENEW_PLACES = "keep:", "steps:", "members:", "places:", "renew_places:"
_AROUND = {
    KEEP: "keep", STEPS: "end_steps", MEMBERS: "end_members", PLACES: "end_places", RENEW_PLACES: "renew_places",
}  # fmt: skip
_INNER = "-- the script\n"
#: a script's name, keys and arguments
ScriptCall = tuple[str, Sequence[str], Sequence[Any]]


@cache
def load_all() -> None:
    """Read and keep every file now: an upgrade may remove the files while we run."""
    for file in (files(__package__) / "lua").iterdir():
        if file.name.endswith(".lua"):
            script(file.name.removesuffix(".lua"))
    for start in _AROUND:
        _around(start)


@cache
def script(name: str) -> tuple[str, str]:
    """The script's text, and the SHA-1 digest by which the server knows it; ``keep:NAME``: within ``keep.lua``."""
    for start in _AROUND:
        if name.startswith(start):
            return _digested(_around(start).replace(_INNER, f"{script(name.removeprefix(start))[0]}\n"))
    return _digested(_with_parts(f"{name}.lua"))


@cache
def _around(start: str) -> str:
    return _with_parts(f"include/{_AROUND[start]}.lua")


def _with_parts(file: str) -> str:
    """The text of this file, behind the parts that it includes."""
    text = _text(file)
    included = re.search(r"^-- include: (.*)$", text, re.MULTILINE)
    parts = [_text(f"include/{part}.lua") for part in (included[1].split() if included else ())]
    return "\n".join([*parts, text])


@cache
def _text(file: str) -> str:
    """Kept, as most scripts include the same few parts."""
    return (files(__package__) / "lua" / file).read_text()


def _digested(whole: str) -> tuple[str, str]:
    return whole, hashlib.sha1(whole.encode()).hexdigest()
