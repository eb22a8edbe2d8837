"""What a pool's board says, as numbers, for metrics; and whether the pool is live, started and ready."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.health import DEAD_AFTER, health_of
from queuepool.board.status import overview
from queuepool.metrics.table import WORKER_STATES

_MB = 1024 * 1024
_STATES: Mapping[State, str] = {
    State.IDLE: "idle", State.BUSY: "busy", State.PAUSED: "paused",
    State.DRAINING: "draining", State.STOPPING: "draining",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """One pool at one moment. Durations are in seconds, timestamps in Unix seconds; 0.0 = never."""

    name: str
    connection: str
    #: seconds since the master's loop last came round; infinity when it never has
    beat_age: float = float("inf")
    #: when a worker or a template had first imported the modules
    ready_at: float = 0.0
    started_at: float = 0.0
    #: since when the store has been away; 0.0 = it is there
    store_lost_at: float = 0.0
    #: when all this was read
    read_at: float = 0.0
    #: since when the store refuses what is new; 0.0 = it has room
    store_full_at: float = 0.0
    #: why no job begins; empty = a worker may begin one
    hindrance: str = ""
    #: whether the newest code does not become ready, or no worker does
    has_boot_problem: bool = False
    generation: int = 0
    maintenance: bool = False
    #: by state, all of ``WORKER_STATES``
    workers: Mapping[str, int] = field(default_factory=dict)
    wanted: int = 0
    room: int = 0
    #: resident bytes by a worker's number
    resident: Mapping[int, int] = field(default_factory=dict)
    longest_run: float = 0.0
    #: kind and subject of each alert that is raised
    alerts: tuple[tuple[str, str], ...] = ()


def read(name: str, connection: str, board: Board) -> PoolFacts:
    """The facts now; values that a job has overwritten may be nonsense, but raise nothing."""
    header, slots, now = board.header, board.of(Role.WORKER), time.time()
    living = [slot for slot in slots if slot.pid and not slot.dead]
    shown = overview(name, board)
    health = health_of(shown)
    return PoolFacts(
        name=name,
        connection=connection,
        beat_age=_age(header.beat),
        ready_at=header.ready,
        started_at=header.since,
        store_lost_at=header.store_lost,
        read_at=now,
        store_full_at=header.store_full,
        hindrance="" if health.takes_jobs else health.troubles[0].text,
        has_boot_problem=health.has("boot"),
        generation=header.generation,
        maintenance=bool(header.down),
        workers=dict.fromkeys(WORKER_STATES, 0) | Counter(map(_state_of, slots)),
        wanted=header.target,
        room=board.max_workers,
        resident={slot.number: slot.rss * _MB for slot in living},
        alerts=tuple(dict.fromkeys((_sound(one.kind), _sound(one.subject)) for one in shown.alerts)),
        longest_run=max((now - one.since for slot in living for one in slot.running()), default=0.0),
    )


def _age(beat: float) -> float:
    """Seconds since the beat; infinity if there is none, or a job has written one that cannot be."""
    now = time.monotonic()
    return now - beat if 0.0 < beat <= now else float("inf")


def _sound(text: str) -> str:
    """Without lone surrogates, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _state_of(slot: Slot) -> str:
    return "dead" if slot.dead else _STATES.get(State(slot.state), "starting")


# Is a pool live, started, ready? Each answer is empty for yes, else the reason in a line; none depends on a job.
# ``queuepool_probe.py`` has the same rules, as it cannot import this; a test compares the answers.


def not_live(facts: PoolFacts) -> str:
    """Why the pool is dead. Nothing but the master's loop counts: a restart would mend nothing else."""
    if facts.beat_age == float("inf"):
        return "the master's loop has never come round"
    return "" if facts.beat_age < DEAD_AFTER else f"the master's loop last came round {facts.beat_age:.0f} s ago"


def not_started(facts: PoolFacts) -> str:
    """Why the pool has not started yet."""
    return "" if facts.ready_at else "no worker has imported the modules yet"


def not_ready(facts: PoolFacts) -> str:
    """Why the pool takes no jobs now."""
    return not_live(facts) or not_started(facts) or facts.hindrance
