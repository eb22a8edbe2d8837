"""The keys, as they are explained, and the verbs that some of them ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from queuepool.board.health import NOT_RUNNING, STUCK
from queuepool.top.layout import Line, Style, line
from queuepool.top.orders import ORDERS, Page
from queuepool.top.text import plain
from queuepool.top.view import Command, Mode, View

HELP = (
    "1 2 3        workers, queues, names of jobs",
    "Tab          the next pool",
    "up down j k  choose a row; PgUp PgDn Home End",
    "Enter        all about the chosen process and its job",
    "s r          another order; reverse it",
    "/            show only rows with a text; Esc shows all again",
    "Space        freeze, go on",
    "q            quit; the pool goes on",
    "",
    "These ask first, and then run the command of that name:",
    "P            pause the pool, or continue it",
    "+ -          scale it to one worker more, one less",
    "R            reload: replace its workers, each after its job",
    "Q            on page 2: pause the chosen queue on all hosts, or continue it",
    "",
    "LIMIT: the share of the job's timeout that is over. KILLED: attempts that their worker did not end itself.",
    "Rates are those of the last 10 s; CHANGE, P50 and P95 those of the last minute.",
)
_HINTS = "? help  q quit  1 workers  2 queues  3 jobs"


def footer(view: View, encoding: str, pools: int) -> Line:
    """The last line: what is being typed, the last result, or the keys."""
    if view.mode is Mode.FILTER:
        return line(plain(f"show only rows with: {view.filter}_", encoding), Style.STRONG)
    if view.note:
        return line(plain(view.note, encoding), Style.STRONG)
    return line(f"{_HINTS}{'  Tab next pool' if pools > 1 else ''}{plain(_state(view), encoding)}", Style.FAINT)


def _state(view: View) -> str:
    order = ORDERS[view.page][view.order]
    words = [f"by {order.name}{' reversed' if view.is_reversed else ''}"] if view.order or view.is_reversed else []
    words += [f"only {view.filter!r}"] if view.filter else []
    words += ["FROZEN"] if view.is_frozen else []
    return f"  [{', '.join(words)}]" if words else ""


Facts = Mapping[str, Any]


def command_for(key: str, view: View, facts: Facts, chosen: Any) -> Command | None:
    """The command that a key asks for; ``chosen`` is the item of the chosen row. ``None`` for other keys."""
    if key == "Q" and view.page is Page.QUEUES and chosen and chosen.name.isprintable():
        return _queue(chosen)
    found = _OF_POOL.get(key)
    return found(facts) if found and facts["state"] != NOT_RUNNING else None


def _queue(queue: Any) -> Command:
    verb = "continue" if queue.is_paused else "pause"
    return Command(
        (verb, "--", queue.name), f"{verb.capitalize()} queue {queue.name!r} on all hosts?", needs_store=True
    )


def _pause(facts: Facts) -> Command:
    verb = "continue" if facts["state"] in ("paused", STUCK) else "pause"
    return Command((verb,), f"{verb.capitalize()} pool {facts['pool']!r} (master {facts['master']})?")


def _reload(facts: Facts) -> Command:
    return Command(("reload",), f"Replace the workers of pool {facts['pool']!r} (master {facts['master']})?")


def _scale(facts: Facts, change: int) -> Command:
    wanted = max(facts["workers"] + change, 0)
    return Command(
        ("scale", "--", str(wanted)), f"Scale pool {facts['pool']!r} from {facts['workers']} to {wanted} workers?"
    )


_OF_POOL: Mapping[str, Callable[[Facts], Command]] = {
    "P": _pause,
    "R": _reload,
    "+": lambda facts: _scale(facts, 1),
    "-": lambda facts: _scale(facts, -1),
}
