"""The command that makes a queue's tables, as errors advise it: it has to mean the same database when it is typed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from queuepool.config.urls import masked


def migrate_command(program: str, path: Path | None, overrides: Mapping[str, str]) -> str:
    """The command with the configuration's file and the URL, where they were given; a login is left out."""
    words = ["-c", str(path)] if path else []
    if url := overrides.get("connection.url", "").strip(" \t"):
        words += ["--url", url if masked(url) == url else "..."]
    return " ".join([program, "migrate", *map(shlex.quote, words)])
