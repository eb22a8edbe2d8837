"""What is shown of a job's payload: bounded, without what is masked, with numbers that JavaScript can hold."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from queuepool.board.shown_pools import RunningJob
from queuepool.operating.job_rows import job_row
from queuepool.search.found import FoundJob
from queuepool.unix.escape import escaped
from queuepool.web.asked import Asked, is_masked

#: values and characters of a text that a list shows of one job, and that its own page shows
_IN_LISTS, _ON_ITS_PAGE = (60, 200), (5_000, 20_000)
#: characters of the arguments in a line
_LINE = 240
#: characters of any other text on a page: names, hosts and errors may come from anybody
_ON_A_PAGE = 500
#: what is bounded by itself
_BOUNDED = ("arguments", "result", "options", "raw", "trace", "error", "payload", "next", "back")
#: above this, JavaScript's numbers leave whole ones out
_MOST_EXACT = 2**53
HIDDEN = "•••"
#: the name of an exception in Python or PHP
_KIND = re.compile(r"[\w.\\]{1,200}")


def shown_job(job: FoundJob, asked: Asked, by: RunningJob | None = None) -> dict[str, Any]:
    """A row of a list, with its arguments also as a line of text."""
    row = without_data(job_row(job, by), asked)
    row["arguments"] = arguments(row["arguments"], asked)
    return row | {"line": line_of(row["arguments"])}


def arguments(value: Any, asked: Asked, *, whole: bool = False) -> Any:
    """As much of the arguments as this visitor is shown."""
    if asked.data == "no":
        return None
    most, longest = _ON_ITS_PAGE if whole else _IN_LISTS
    mask = asked.mask if asked.data == "yes" else None
    return _Copy(most, longest, mask).of(value)


def without_data(row: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
    """The facts of a job. If no values are shown, neither are texts of its code, which may repeat them."""
    if asked.data == "yes":
        return dict(row)
    hidden: dict[str, Any] = {"note": "", "tags": [], "options": None}
    kinds = {key: kind_of(row[key]) for key in ("error", "exception", "ended_error") if row.get(key)}
    return {**row, **{key: value for key, value in hidden.items() if key in row}, **kinds}


def flow_without_data(row: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
    """The facts of a flow. If no values are shown, neither is its name, which may be made of some."""
    return dict(row) if asked.data == "yes" else {**row, "name": ""}


def kind_of(error: str) -> str:
    """An error without its message: the name of its exception."""
    kind = error.partition(":")[0]
    return kind if _KIND.fullmatch(kind) else HIDDEN


def line_of(value: Any) -> str:
    """The arguments in one line."""
    text = "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LINE else f"{text[:_LINE]}…"


def for_page(value: Any) -> Any:
    """Facts with texts as a page can show them: none takes all of it, and none is invisible."""
    if isinstance(value, Mapping):
        # The names of columns are texts of others, too, and are looked up by what the page shows of them.
        return {for_page(name): one if _is_bounded(name, one) else for_page(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [for_page(one) for one in value]
    if not isinstance(value, str) or not value:
        return value
    seen = value if any(char.isprintable() and char != " " for char in value[:_ON_A_PAGE]) else escaped(value)
    return seen if len(seen) <= _ON_A_PAGE else f"{seen[:_ON_A_PAGE]}…"


def _is_bounded(name: object, value: object) -> bool:
    # As one text these words are what an action has answered; several are what is known of a schedule.
    return name in _BOUNDED or (name == "words" and isinstance(value, str))


class _Copy:
    """Copies a value, at most so many parts of it; ``mask``: words of names without values, ``None`` = all of them."""

    def __init__(self, most: int, longest: int, mask: Sequence[str] | None) -> None:
        self._left = most
        self._longest = longest
        self._mask = mask

    def of(self, value: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            return "…"
        if isinstance(value, Mapping):
            return {self._text(str(name)): self._named(str(name), one) for name, one in self._first(value.items())}
        if isinstance(value, list):
            return [self.of(one) for one in self._first(value)]
        return HIDDEN if self._mask is None and value is not None else self._single(value)

    def _named(self, name: str, value: Any) -> Any:
        if self._mask is not None and is_masked(name, self._mask):
            return HIDDEN
        return self.of(value)

    def _first(self, items: Any) -> Any:
        """As many as there is room for, and one more, which shows that some are left out."""
        return [one for one, _ in zip(items, range(max(self._left, 0) + 1), strict=False)]

    def _single(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MOST_EXACT:
            return str(value) if value.bit_length() < 10_000 else "…"
        return value

    def _text(self, value: str) -> str:
        return value if len(value) <= self._longest else f"{value[: self._longest]}…"
