"""The notices of the pools of all hosts as ``status --all`` shows them: how old they are, and which pools are lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from queuepool.board.health import Health, health_of, health_of_lost
from queuepool.board.overview import PoolOverview, ran_in, texts_in
from queuepool.board.record import DAMAGED
from queuepool.stores.contract import NOTICE_LASTS
from queuepool.stores.control import LEFT_KEPT, instance_in, names_of, newest_of

#: seconds after which two notices are missing
_LATE = 10.0
#: jobs of a lost pool that are named
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class PublishedPool:
    """A pool's newest notice, its ``facts``, which another version may have written; ``age`` is in seconds."""

    facts: Mapping[str, Any]
    age: float
    #: ``None``: the notice is damaged
    overview: PoolOverview | None
    queues: tuple[str, ...] = ()
    #: of the queues; empty = strict order
    weights: tuple[int, ...] = ()

    @classmethod
    def of(cls, notice: Mapping[str, Any], age: float) -> PublishedPool:
        with suppress(*DAMAGED):
            queues = tuple(texts_in(notice.get("queues", [])))
            return cls(notice, age, PoolOverview.from_json(notice), queues, _weights_in(notice, len(queues)))
        return cls(notice, age, None)

    def to_json(self) -> dict[str, Any]:
        """The facts as published, with their age as ``notice_age`` and, unless they are damaged, the pool's health."""
        health = self.health
        return {**self.facts, "notice_age": round(self.age, 1), **(health.to_json() if health else {})}

    @property
    def name(self) -> str:
        return str(self.facts["pool"])

    @property
    def host(self) -> str:
        return str(self.facts["host"])

    @property
    def instance(self) -> str:
        """Its id; empty in the notice of an older version."""
        return instance_in(self.facts)

    @property
    def is_lost(self) -> bool:
        """Whether it has published nothing for half a minute, and was not stopped."""
        return self.age > NOTICE_LASTS

    @property
    def health(self) -> Health | None:
        """``None`` if the notice is damaged."""
        if self.is_lost:
            return health_of_lost(self.age, ran_in(self.facts, _MOST_NAMED))
        return health_of(self.overview) if self.overview else None

    @property
    def rate_words(self) -> str:
        """How many jobs are done and fail in a minute; empty if the notice has no rates."""
        done, failed = self.facts.get("done_per_minute"), self.facts.get("failed_per_minute")
        if not (isinstance(done, int | float) and isinstance(failed, int | float)) or self.is_lost:
            return ""
        with suppress(OverflowError):  # a whole number of any length
            return f" done/min={done:g} failed/min={failed:g}"
        return ""

    @property
    def age_words(self) -> str:
        """How old the notice is, once it is late; its numbers are as old."""
        return f" notice={self.age:.0f}s ago" if self.age > _LATE else ""


@dataclass(frozen=True, slots=True)
class LeftPool:
    """A pool that was stopped ``age`` seconds ago; its numbers are those at its end."""

    host: str
    name: str
    instance: str
    age: float
    done: int = 0
    failed: int = 0

    def to_json(self) -> dict[str, Any]:
        facts = {"pool": self.name, "host": self.host, "id": self.instance, "left_ago": round(self.age, 1)}
        counts = {"done": self.done, "failed": self.failed}
        return {**facts, **counts, "state": "left", "takes_jobs": False, "rests": True, "is_well": True, "troubles": []}


def left_of(left: Iterable[Mapping[str, Any]], now: float, present: Iterable[PublishedPool]) -> list[LeftPool]:
    """The pools that have left within an hour: the last one of each name, unless another pool has that name now."""
    there = {(pool.host, pool.name) for pool in present}
    found = {(one["host"], one["pool"]): one for one in left if (one["host"], one["pool"]) not in there}
    pools = (
        LeftPool(
            host, name, instance_in(one), max(now - one["at"], 0.0), _count(one.get("done")), _count(one.get("failed"))
        )
        for (host, name), one in found.items()
    )
    return [pool for pool in pools if pool.age < LEFT_KEPT]


def _weights_in(notice: Mapping[str, Any], count: int) -> tuple[int, ...]:
    """The weights of so many queues; none if they are damaged."""
    found = notice.get("weights")
    is_sound = isinstance(found, list) and len(found) == count and all(isinstance(one, int) for one in found)
    return tuple(found) if isinstance(found, list) and is_sound else ()


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def names_of_pools(pools: Iterable[PublishedPool]) -> dict[str, str]:
    """How to address each of them, by its instance: ``HOST/POOL``, with ``#ID`` only where several have that name."""
    names = names_of(((pool.host, pool.name, pool.instance) for pool in pools), between="/")
    return {instance: name for (_, _, instance), name in names.items() if instance}


def latest_of(notices: Iterable[Mapping[str, Any]], now: float) -> list[PublishedPool]:
    """The newest notice of each pool; ``now``: the store's clock."""
    return [PublishedPool.of(notice, max(now - notice["at"], 0.0)) for notice in newest_of(notices).values()]
