"""What the person at the terminal looks at, and how keys change that. Pure: no key does anything by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from queuepool.top.orders import ORDERS, Page

_MOST_FILTER = 60
_PAGES = {"1": Page.WORKERS, "2": Page.QUEUES, "3": Page.JOBS}
#: rows by which a key moves
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10, "home": -100_000, "end": 100_000}
ENTER, ESCAPE, ERASE = ("\n", "\r", "enter"), "\x1b", ("\x7f", "\b", "backspace")


class Mode(Enum):
    """What the keys go to, and what lies over the tables."""

    TABLES = 0
    HELP = 1
    DETAILS = 2
    FILTER = 3
    QUESTION = 4


class Command(NamedTuple):
    """A verb of the command line with its arguments, and what to ask before it is run."""

    words: Sequence[str]
    question: str
    needs_store: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """``pool`` and ``row`` count from 0 and may be too large: what is shown is the last one then."""

    pool: int = 0
    page: Page = Page.WORKERS
    mode: Mode = Mode.TABLES
    row: int = 0
    order: int = 0
    is_reversed: bool = False
    is_frozen: bool = False
    filter: str = ""
    command: Command | None = None
    note: str = ""
    has_ended: bool = False


def moved(view: View, key: str, pools: int, rows: int) -> View:
    """The view after a key that needs no facts; unchanged for others. ``rows``: how many the page has."""
    if view.mode is Mode.FILTER:
        return _filtering(view, key)
    if view.mode is not Mode.TABLES:  # any key closes it
        return replace(view, mode=Mode.TABLES, command=None)
    if step := _STEPS.get(key):
        return replace(view, row=min(max(min(view.row, rows - 1) + step, 0), max(rows - 1, 0)))
    if key in _PAGES:
        return replace(view, page=_PAGES[key], row=0, order=0, is_reversed=False)
    if key in ("\t", "back tab"):
        return replace(view, pool=(view.pool + (1 if key == "\t" else -1)) % max(pools, 1), row=0)
    return _switched(view, key)


def _switched(view: View, key: str) -> View:
    match key:
        case "q":
            return replace(view, has_ended=True)
        case "?":
            return replace(view, mode=Mode.HELP)
        case "s":
            return replace(view, order=(view.order + 1) % len(ORDERS[view.page]))
        case "r":
            return replace(view, is_reversed=not view.is_reversed)
        case "/":
            return replace(view, mode=Mode.FILTER, filter="")
        case " ":
            return replace(view, is_frozen=not view.is_frozen)
        case "\x1b":
            return replace(view, filter="", note="")
    if key in ENTER:
        return replace(view, mode=Mode.DETAILS) if view.page is Page.WORKERS else view
    return view


def _filtering(view: View, key: str) -> View:
    if key in ENTER:
        return replace(view, mode=Mode.TABLES, row=0)
    if key == ESCAPE:
        return replace(view, mode=Mode.TABLES, filter="")
    if key in ERASE:
        return replace(view, filter=view.filter[:-1])
    if len(key) == 1 and key.isprintable():
        return replace(view, filter=(view.filter + key)[:_MOST_FILTER], row=0)
    return view


def asked(view: View, command: Command) -> View:
    """The view that asks whether to run the command."""
    return replace(view, mode=Mode.QUESTION, command=command)
