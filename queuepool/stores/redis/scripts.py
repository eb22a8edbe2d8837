"""The Lua scripts: each file with the parts that it includes."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files


@cache
def load_all() -> None:
    """Read and keep every file now: an upgrade may remove the files while we run."""
    for file in (files(__package__) / "lua").iterdir():
        if file.name.endswith(".lua"):
            script(file.name.removesuffix(".lua"))


@cache
def script(name: str) -> tuple[str, str]:
    """The script's text, and the SHA-1 digest by which the server knows it."""
    folder = files(__package__) / "lua"
    text = (folder / f"{name}.lua").read_text()
    included = re.search(r"^-- include: (.*)$", text, re.MULTILINE)
    parts = [(folder / "include" / f"{part}.lua").read_text() for part in (included[1].split() if included else ())]
    whole = "\n".join([*parts, text])
    return whole, hashlib.sha1(whole.encode()).hexdigest()
