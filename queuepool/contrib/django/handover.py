"""A configuration as a text, for a program that must not import the project that it comes from."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from queuepool.config.application import Source
from queuepool.config.entries import Document, Entry, Place, Problem


def written(source: Source) -> int:
    """The descriptor of a file with the modules' places in its first line, and then these settings."""
    lines = [_written(line) for line in source.document.lines]
    names = {"name": source.name, "command": source.command, "typed": source.typed}
    about = {"folder": str(source.folder), **names, "lines": lines}
    descriptor = os.memfd_create("queuepool settings")
    with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
        file.write(f"{json.dumps(sys.path)}\n{json.dumps(about)}\n")
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.set_inheritable(descriptor, True)
    return descriptor


def read(text: str) -> Source:
    """What ``written`` wrote after the first line."""
    about = json.loads(text)
    lines = tuple(_read(*line) for line in about["lines"])
    return Source(Document(lines), Path(about["folder"]), about["name"], tuple(about["command"]), about["typed"])


def _written(line: Entry | Problem) -> list[str | int]:
    texts = [line.text] if isinstance(line, Problem) else [line.section, line.key, line.value]
    return [line.place.label, line.place.line, *texts]


def _read(label: str, number: int, text: str, *rest: str) -> Entry | Problem:
    place = Place(label, number)
    if not rest:
        return Problem(place, text)
    key, value = rest
    return Entry(text, key, value, place)
