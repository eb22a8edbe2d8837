"""A pool and its processes as ``status`` shows them: as values, and as the JSON in which pools publish them.

JSON from a store may be an older or a newer version's, or damaged: ``from_json`` leaves out what it does not know, has
a default for what an older version lacks, and raises one of ``DAMAGED`` for what no pool has written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from queuepool.board.pauses import pause_words
from queuepool.board.record import DAMAGED

#: paused queues that a line names
_MOST_PAUSED = 20
#: the types of single values in JSON, by their annotation
_KINDS = {"bool": bool, "int": int, "float": float, "str": str}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job that runs. ``since`` is in ISO 8601; ``running`` and ``time_left`` are in seconds."""

    name: str
    id: str
    queue: str = ""
    attempt: int = 0
    since: str = ""
    running: float = 0.0
    #: until its timeout, negative when that is past; ``None`` without one
    time_left: float | None = None
    #: its progress as it reports it, from 0 to 1, and in words; ``None`` if it reports none
    progress: float | None = None
    note: str | None = None

    @property
    def far(self) -> str:
        """Its progress in words; empty if it reports none."""
        return "" if self.progress is None else f"{self.progress:.0%} {self.note or ''}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """A process of a pool. What only workers have is ``None`` for other processes; ``memory`` is in MB."""

    role: str
    number: int = 0
    pid: int = 0
    state: str = ""
    generation: int = 0
    done: int | None = None
    failed: int | None = None
    released: int | None = None
    memory: int | None = None
    #: what a busy worker runs, the oldest first
    jobs: tuple[JobRow, ...] = ()

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> ProcessRow:
        jobs = facts["jobs"] if "jobs" in facts else [facts["job"]] if "job" in facts else ()
        return cls(**_values(cls, facts), jobs=tuple(JobRow(**_values(JobRow, job)) for job in jobs))

    def to_json(self) -> dict[str, Any]:
        jobs = [_facts(job, optional=("progress", "note")) for job in self.jobs]
        facts = _facts(self, optional=self.__slots__)
        del facts["jobs"]
        return facts | ({"job": jobs[0]} if jobs else {}) | ({"jobs": jobs} if len(jobs) > 1 else {})

    @property
    def job(self) -> JobRow | None:
        """What it runs, of several the oldest; ``None`` if it runs none."""
        return self.jobs[0] if self.jobs else None

    @property
    def name(self) -> str:
        """``worker 3``, ``steward``."""
        return f"{self.role} {self.number}" if self.number else self.role


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRow:
    """An alert that is raised, since a time in ISO 8601."""

    kind: str = ""
    subject: str = ""
    value: float = 0.0
    limit: float = 0.0
    since: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRow:
    """A queue that is paused, since a time in ISO 8601, and by whom, if that is known."""

    queue: str
    since: str
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRow:
    """What the number of workers follows, if not the configuration alone."""

    #: the bounds; both are 0 if the pool does not scale by itself
    fewest: int = 0
    most: int = 0
    #: how many workers the steward wishes for; ``None`` = it is not known
    wish: int | None = None
    #: how many the jobs need, whatever the bounds
    needed: int | None = None
    #: whether an operator has ordered the number, and until when, in ISO 8601; ``None`` = until another order
    pinned: bool = False
    until: str | None = None
    #: why there are so many, in a few words
    why: str = ""
    #: what keeps the number from following the needed one: a word of ``scaling.HELD``; ``None`` = nothing does
    held: str | None = None
    #: why there are not more of them now, and why not fewer, in words; empty if it is an older version's
    not_more: str = ""
    not_fewer: str = ""

    @property
    def reasons(self) -> str:
        """Why there are neither more nor fewer, in a line; empty if it is not known."""
        if not (self.not_more and self.not_fewer):
            return ""
        if self.not_more == self.not_fewer:
            return f"neither more nor fewer: {self.not_more}"
        return f"not more: {self.not_more}; not fewer: {self.not_fewer}"

    @property
    def words(self) -> str:
        """What it follows, in a line."""
        mode = f"pinned{f' until {self.until}' if self.until else ''}" if self.pinned else "auto"
        bounds = f" between {self.fewest} and {self.most}" if self.most else ""
        wish = "" if self.wish is None else f", wish {self.wish}"
        return f"{mode}{bounds}{wish}{f': {self.why}' if self.why else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOverview:
    """A pool at one moment; times are in ISO 8601 in UTC, durations in seconds.

    Its JSON has the same names; docs/reference/json.md explains them.
    """

    pool: str = ""
    master: int = 0
    state: str
    since: str = ""
    #: ``None`` for a master of a version that has no beat
    beat_age: float | None = None
    workers: int
    busy: int = 0
    done: int = 0
    failed: int = 0
    released: int = 0
    restarts: int = 0
    generation: int = 0
    orphans: int = 0
    outdated: int = 0
    boot_problem: str | None = None
    control_known: bool = False
    maintenance: bool = False
    paused: Sequence[str] = ()
    #: the paused queues of which it is known since when and by whom
    pauses: Sequence[PauseRow] = ()
    #: since when and by whom the pool itself is paused, if that is known
    paused_since: str | None = None
    paused_by: str | None = None
    #: the same of maintenance mode
    maintenance_since: str | None = None
    maintenance_by: str | None = None
    store_lost: str | None = None
    store_full: str | None = None
    failed_store_lost: str | None = None
    control_store_lost: str | None = None
    unrecorded: int = 0
    #: jobs of its queues that wait for places of limits
    parked: int = 0
    alerts: Sequence[AlertRow] = ()
    #: ``None`` if the number of workers is the configuration's, or that of the last order
    scaling: ScalingRow | None = None
    processes: Sequence[ProcessRow]

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> PoolOverview:
        """From a pool's notice, or anything else; raises one of ``DAMAGED`` for what no pool has written."""
        found = cls(
            **_values(cls, facts),
            paused=texts_in(facts.get("paused", [])),
            pauses=[PauseRow(**_values(PauseRow, one)) for one in facts.get("pauses", ())],
            alerts=[AlertRow(**_values(AlertRow, one)) for one in facts.get("alerts", ())],
            scaling=ScalingRow(**_values(ScalingRow, facts["scaling"])) if "scaling" in facts else None,
            processes=processes_in(facts),
        )
        if found.store_lost:
            datetime.fromisoformat(found.store_lost).timestamp()
        return found

    def to_json(self) -> dict[str, Any]:
        return _facts(self, optional=("scaling",)) | {
            "pauses": [_facts(one) for one in self.pauses],
            "alerts": [_facts(one) for one in self.alerts],
            **({"scaling": _facts(self.scaling)} if self.scaling else {}),
            "processes": [process.to_json() for process in self.processes],
        }

    @property
    def pause_words(self) -> str:
        """Since when and by whom the pool itself is paused; empty if that is not known."""
        return pause_words(self.paused_since, self.paused_by) if self.paused_since else ""

    @property
    def maintenance_words(self) -> str:
        """The same for maintenance mode."""
        return pause_words(self.maintenance_since, self.maintenance_by) if self.maintenance_since else ""

    @property
    def paused_words(self) -> str:
        """The paused queues in words, some of them by name."""
        known = {one.queue: one for one in self.pauses}
        words = [
            queue + (pause_words(known[queue].since, known[queue].by) if queue in known else "")
            for queue in self.paused[:_MOST_PAUSED]
        ]
        left_out = len(self.paused) - len(words)
        return ", ".join([*words, *([f"and {left_out} more"] if left_out else [])])


def processes_in(notice: Mapping[str, Any]) -> list[ProcessRow]:
    """The processes of a pool that has published this, or anything else. Raises one of ``DAMAGED``."""
    return [ProcessRow.from_json(one) for one in notice["processes"]]


def ran_in(notice: Mapping[str, Any], most: int) -> str:
    """What the pool of this notice ran, in words, with the names and ids of ``most`` jobs; empty if it is damaged."""
    try:
        jobs = [job for process in processes_in(notice) for job in process.jobs]
    except DAMAGED:
        return ""
    shown = ", ".join(f"{job.name} {job.id}" for job in jobs[:most])
    more = f" and {len(jobs) - most} more" if len(jobs) > most else ""
    return f"it ran {shown}{more}" if shown else "it ran no job"


def texts_in(value: Any) -> list[str]:
    """A list of texts from JSON. Raises ``TypeError`` for anything else."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError("not a list of texts")
    return value


def _values(cls: type, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The single values of a class from JSON, by name. Raises ``TypeError`` for one of another type."""
    kinds = {field.name: str(field.type).partition(" | ") for field in fields(cls)}
    return {
        name: _value(facts[name], kind, bool(other))
        for name, (kind, _, other) in kinds.items()
        if kind in _KINDS and name in facts
    }


def _value(value: Any, kind: str, or_none: bool) -> Any:
    if value is None and or_none:
        return None
    if kind == "float" and isinstance(value, int):
        return float(value)
    if not isinstance(value, _KINDS[kind]):
        raise TypeError(f"not of type {kind}")
    return value


def _facts(
    row: JobRow | ProcessRow | AlertRow | PauseRow | ScalingRow | PoolOverview, optional: Collection[str] = ()
) -> dict[str, Any]:
    """The attributes of a row, ready for JSON, without those of ``optional`` that are ``None``."""
    values = ((name, getattr(row, name)) for name in row.__slots__)
    return {name: value for name, value in values if value is not None or name not in optional}
