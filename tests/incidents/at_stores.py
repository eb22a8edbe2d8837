"""Incidents of the store."""

from __future__ import annotations

from collections.abc import Iterator

from tests.incidents.incident import Answer, Incident, answer
from tests.incidents.scene import Scene


def _restarts(scene: Scene) -> Iterator[Answer]:
    away = "the store has been away since"
    scene.redis.kill()
    scene.waits_for("queuepool status", away)
    hidden = "pools of other hosts on connection redis cannot be seen"
    yield answer(
        scene, "queuepool status --all", "pool web:", away, hidden, code=1, only=("queuepool: ", "pool ", away, hidden)
    )
    scene.redis.start()
    scene.waits_for("queuepool status", without=[away])
    back = ("pool web: running", "pool billing: running")
    yield answer(scene, "queuepool status", *back, only=("pool ",), without=[away])


def _is_full(scene: Scene) -> Iterator[Answer]:
    full = "the store has been full since"
    _allow(scene, int(scene.redis.client.info("memory")["used_memory"]) // 2)
    scene.waits_for("queuepool status", full)
    yield answer(scene, "queuepool status", full, only=("pool web", full))
    numbers = ("the server is full and refuses new jobs", "(maxmemory) are used")
    yield answer(scene, "queuepool check", *numbers, code=1, only=("FAIL",))
    _allow(scene, 0)
    scene.waits_for("queuepool status", without=[full])


def _allow(scene: Scene, size: int) -> None:
    """0: as much as there is."""
    scene.redis.client.config_set("maxmemory", size)


RESTARTS = Incident(
    "Redis is restarted",
    "Redis has been away for some seconds. Are the pools back at work?",
    _restarts,
    "Nothing: the pools wait for their store, and go on. A job that ran meanwhile is settled when the store is back.",
)
IS_FULL = Incident(
    "Redis is full",
    "Producers report that every push fails.",
    _is_full,
    "The pools go on with what is stored, which makes room. If `queuepool size` says that it does not, raise "
    "`maxmemory`. The alert `store_full` would have said it after a minute.",
)
