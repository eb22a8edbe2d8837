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
from queuepool.stores.control import newest_of

#: seconds after which two notices are missing
_LATE = 10.0
#: jobs of a lost pool that are named
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class PublishedPool:
    """A pool's newest notice, its ``facts``, which another version may have written; ``age`` is in seconds."""

    facts: Mapping[str, Any]
    age: float
    #: ``None``: what the notice says is damaged
    overview: PoolOverview | None
    queues: tuple[str, ...] = ()

    @classmethod
    def of(cls, notice: Mapping[str, Any], age: float) -> PublishedPool:
        with suppress(*DAMAGED):
            queues = texts_in(notice.get("queues", []))
            return cls(notice, age, PoolOverview.from_json(notice), tuple(queues))
        return cls(notice, age, None)

    def to_json(self) -> dict[str, Any]:
        """As it was published, with its age as ``notice_age`` and, unless it is damaged, its health."""
        health = self.health
        return {**self.facts, "notice_age": round(self.age, 1), **(health.to_json() if health else {})}

    @property
    def name(self) -> str:
        return str(self.facts["pool"])

    @property
    def host(self) -> str:
        return str(self.facts["host"])

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
    def age_words(self) -> str:
        """How old the notice is, once it is late; its numbers are as old."""
        return f" notice={self.age:.0f}s ago" if self.age > _LATE else ""


def latest_of(notices: Iterable[Mapping[str, Any]], now: float) -> list[PublishedPool]:
    """The newest notice of each pool; ``now``: the store's clock."""
    return [PublishedPool.of(notice, max(now - notice["at"], 0.0)) for notice in newest_of(notices).values()]
