"""The keys, as they are explained, and the verbs that some of them ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from queuepool.board.health import STUCK
from queuepool.board.overview import PoolOverview
from queuepool.top.layout import Line, Style, line
from queuepool.top.orders import ORDERS
from queuepool.top.queues import Queue
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


def command_for(key: str, pool: PoolOverview | None, chosen: object) -> Command | None:
    """The command that a key asks for; ``None`` for other keys, and for a pool that does not run.

    ``chosen`` is the item of the chosen row, if any.
    """
    if key == "Q" and isinstance(chosen, Queue) and chosen.name.isprintable():
        return _queue(chosen)
    found = _OF_POOL.get(key)
    return found(pool) if found and pool else None


def _queue(queue: Queue) -> Command:
    verb = "continue" if queue.is_paused else "pause"
    return Command(
        (verb, "--", queue.name), f"{verb.capitalize()} queue {queue.name!r} on all hosts?", needs_store=True
    )


def _pause(pool: PoolOverview) -> Command:
    verb = "continue" if pool.state in ("paused", STUCK) else "pause"
    return Command((verb,), f"{verb.capitalize()} pool {pool.pool!r} (master {pool.master})?")


def _reload(pool: PoolOverview) -> Command:
    return Command(("reload",), f"Replace the workers of pool {pool.pool!r} (master {pool.master})?")


def _scale(pool: PoolOverview, change: int) -> Command:
    wanted = max(pool.workers + change, 0)
    return Command(("scale", "--", str(wanted)), f"Scale pool {pool.pool!r} from {pool.workers} to {wanted} workers?")


_OF_POOL: Mapping[str, Callable[[PoolOverview], Command]] = {
    "P": _pause,
    "R": _reload,
    "+": lambda pool: _scale(pool, 1),
    "-": lambda pool: _scale(pool, -1),
}
