"""Dramatiq's limits: a counter, and a job that finds no place raises and is tried again later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import CurrentMessage
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend

from tests.bench.peers.holding import hold
from tests.bench.peers.peer import BIN, url

_broker = RedisBroker(url=url())
_broker.add_middleware(CurrentMessage())
dramatiq.set_broker(_broker)
_BACKEND = RedisBackend(url=url())
#: milliseconds after which a job of the quick ones is tried again
_SOON = 100


def _actor(name: str, places: int, **options: Any) -> dramatiq.Actor[[int, float], None]:
    limiter = ConcurrentRateLimiter(_BACKEND, f"places-{places}", limit=places)

    @dramatiq.actor(actor_name=f"{name}-{places}", **options)
    def run(n: int, seconds: float) -> None:
        with limiter.acquire():
            message = CurrentMessage.get_current_message()
            assert message
            hold(n, seconds, 1 + message.options.get("retries", 0))

    return run


class DramatiqLimits:
    def __init__(self, name: str, settings: str, **options: Any) -> None:
        self.name = name
        self.settings = f"`ConcurrentRateLimiter`, {settings}"
        self._actors = [_actor(name.replace(" ", "-"), places, **options) for places in (1, 2)]

    def push(self, places: int, numbers: Iterable[int], seconds: float) -> None:
        for n in numbers:
            self._actors[places - 1].send(n, seconds)

    def commands(self, workers: int) -> list[list[str]]:
        """Two masters, since one whose worker is killed ends the others."""
        words = [f"{BIN}/dramatiq", __name__, "--processes", str(workers // 2), "--threads", "1"]
        return [words, words]


_RETRIES = {"max_retries": None, "min_backoff": _SOON, "max_backoff": _SOON}
QUEUES = [
    DramatiqLimits("Dramatiq", "as it comes: 20 retries, the first after 15 to 30 s"),
    DramatiqLimits("Dramatiq soon", f"retries without end, after {_SOON} ms", **_RETRIES),
]
