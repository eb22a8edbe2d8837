"""What is shown of the steps that are kept of a job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from queuepool.payload.encrypter import MARK
from queuepool.payload.kept_step import CURSOR
from queuepool.stores.factory import Stores

#: most characters of a value in a line
_LINE = 200


class KeptStep(NamedTuple):
    """A step that was done, or a cursor with the key of its last row that was."""

    name: str
    is_cursor: bool
    #: ``None`` if it is encrypted, or damaged
    value: Any
    is_closed: bool = False

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {"name": self.name, "kind": "cursor" if self.is_cursor else "step", "value": self.value}


def steps_of(stores: Stores, job_id: str) -> list[KeptStep]:
    """The steps in the order of their names, then the cursors. Raises ``StoreError``."""
    found = (_kept(name, raw) for name, raw in stores.steps.of_job(job_id).items())
    return sorted(found, key=lambda one: (one.is_cursor, _by_number(one.name)))


def forget(stores: Stores, job_id: str, name: str) -> bool:
    """Forget the step, or the cursor, of this name; ``False`` if none is kept. Raises ``StoreError``."""
    return stores.steps.forget(job_id, name) or stores.steps.forget(job_id, CURSOR + name)


def lines_of(steps: Sequence[KeptStep]) -> Iterator[str]:
    """A line for each, for people."""
    for one in steps:
        text = "encrypted" if one.is_closed else json.dumps(one.value, ensure_ascii=False)
        text = text if len(text) <= _LINE else f"{text[:_LINE]}…"
        yield f"cursor {one.name}: done up to {text}" if one.is_cursor else f"step {one.name}: {text}"


def _kept(name: str, raw: bytes) -> KeptStep:
    value, is_closed = None, True
    with suppress(ValueError, RecursionError):
        value = json.loads(raw)
        is_closed = isinstance(value, dict) and [*value] == [MARK]
    return KeptStep(name.removeprefix(CURSOR), name.startswith(CURSOR), None if is_closed else value, is_closed)


def _by_number(name: str) -> list[tuple[int, int, str]]:
    """``ship:9`` is before ``ship:10``."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d{1,18})", name)]
