"""What the person at the terminal looks at, and how keys change that. Pure: no key does anything by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from queuepool.board.health import STUCK
from queuepool.board.overview import PoolOverview
from queuepool.top.layout import Line, Style, line, plain
from queuepool.top.tables import PAGES, Page, QueueRow

_MOST_FILTER = 60
_PAGES_BY_KEY = {"1": Page.WORKERS, "2": Page.QUEUES, "3": Page.JOBS}
#: rows by which a key moves
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10, "home": -100_000, "end": 100_000}
ENTER, ESCAPE, ERASE = ("\n", "\r", "enter"), "\x1b", ("\x7f", "\b", "backspace")
HELP = (
    "1 2 3        workers, queues, names of jobs",
    "Tab          the next pool",
    "up down j k  choose a row; PgUp PgDn Home End",
    "Enter        all about the chosen process and its job",
    "s r          change the order; reverse it",
    "/            show only rows with a text; Esc shows all again",
    "Space        freeze, continue",
    "q            quit; the pool keeps running",
    "",
    "These ask first, and then run the command of that name:",
    "P            pause the pool, or continue it",
    "+ -          scale it by one worker, up or down",
    "R            reload: replace its workers, each after its job",
    "Q            on page 2: pause the chosen queue on all hosts, or continue it",
    "",
    "LIMIT: the share of the job's timeout that has passed. KILLED: attempts that their worker did not end itself.",
    "Rates are those of the last 10 s; CHANGE, P50 and P95 those of the last minute.",
)
_HINTS = "? help  q quit  1 workers  2 queues  3 jobs"


class Mode(Enum):
    """What the keys go to, and what lies over the tables."""

    TABLES = 0
    HELP = 1
    DETAILS = 2
    FILTER = 3
    QUESTION = 4


class KeyCommand(NamedTuple):
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
    command: KeyCommand | None = None
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
    if key in _PAGES_BY_KEY:
        return replace(view, page=_PAGES_BY_KEY[key], row=0, order=0, is_reversed=False)
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
            return replace(view, order=(view.order + 1) % len(PAGES[view.page].orders))
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


def asked(view: View, command: KeyCommand) -> View:
    """The view that asks whether to run the command."""
    return replace(view, mode=Mode.QUESTION, command=command)


def footer(view: View, encoding: str, pools: int) -> Line:
    """The last line: what is being typed, the last result, or the keys."""
    if view.mode is Mode.FILTER:
        return line(plain(f"show only rows with: {view.filter}_", encoding), Style.STRONG)
    if view.note:
        return line(plain(view.note, encoding), Style.STRONG)
    return line(f"{_HINTS}{'  Tab next pool' if pools > 1 else ''}{plain(_state(view), encoding)}", Style.FAINT)


def _state(view: View) -> str:
    order = PAGES[view.page].orders[view.order]
    words = [f"by {order.name}{' reversed' if view.is_reversed else ''}"] if view.order or view.is_reversed else []
    words += [f"only {view.filter!r}"] if view.filter else []
    words += ["FROZEN"] if view.is_frozen else []
    return f"  [{', '.join(words)}]" if words else ""


def command_for(key: str, pool: PoolOverview | None, chosen: object) -> KeyCommand | None:
    """The command that a key asks for; ``None`` for other keys, and for a pool that does not run.

    ``chosen`` is the item of the chosen row, if any.
    """
    if key == "Q" and isinstance(chosen, QueueRow) and chosen.name.isprintable():
        return _queue(chosen)
    found = _OF_POOL.get(key)
    return found(pool) if found and pool else None


def _queue(queue: QueueRow) -> KeyCommand:
    verb = "continue" if queue.is_paused else "pause"
    return KeyCommand(
        (verb, "--", queue.name), f"{verb.capitalize()} queue {queue.name!r} on all hosts?", needs_store=True
    )


def _pause(pool: PoolOverview) -> KeyCommand:
    verb = "continue" if pool.state in ("paused", STUCK) else "pause"
    return KeyCommand((verb,), f"{verb.capitalize()} pool {pool.pool!r} (master {pool.master})?")


def _reload(pool: PoolOverview) -> KeyCommand:
    return KeyCommand(("reload",), f"Replace the workers of pool {pool.pool!r} (master {pool.master})?")


def _scale(pool: PoolOverview, change: int) -> KeyCommand:
    wanted = max(pool.workers + change, 0)
    return KeyCommand(
        ("scale", "--", str(wanted)), f"Scale pool {pool.pool!r} from {pool.workers} to {wanted} workers?"
    )


_OF_POOL: Mapping[str, Callable[[PoolOverview], KeyCommand]] = {
    "P": _pause,
    "R": _reload,
    "+": lambda pool: _scale(pool, 1),
    "-": lambda pool: _scale(pool, -1),
}
