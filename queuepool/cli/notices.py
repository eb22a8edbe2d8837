"""The notices of the pools of all hosts as ``status --all`` shows them: how old they are, and which pools are lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from queuepool.board.health import LOST
from queuepool.stores.contract import NOTICE_LASTS
from queuepool.stores.control import newest_of

#: seconds after which two notices have not come
_LATE = 10.0


def latest_of(notices: Iterable[Mapping[str, Any]], now: float) -> list[dict[str, Any]]:
    """The newest notice of each pool with its age in seconds as ``notice_age``; ``now``: the store's clock.

    A pool that has published nothing for half a minute is ``lost``.
    """
    return [_aged(notice, max(now - notice["at"], 0.0)) for notice in newest_of(notices).values()]


def age_words(pool: Mapping[str, Any]) -> str:
    """How old the notice is, once it is late; its numbers are as old."""
    age = pool.get("notice_age", 0.0)
    return f" notice={age:.0f}s ago" if age > _LATE else ""


def shown_processes(pool: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All of them; of a lost pool those that ran a job."""
    return [process for process in pool["processes"] if pool["state"] != LOST or "job" in process]


def _aged(notice: Mapping[str, Any], age: float) -> dict[str, Any]:
    lost = {"state": LOST} if age > NOTICE_LASTS else {}
    return {**notice, "notice_age": round(age, 1), **lost}
