"""Jobs with limits: a few at a time, one of each tenant at a time, so many in a while, and all of these at once.

Their calls say where they need places, so that their first lines do. Every other push of them knows their limits.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from queuepool import Concurrency, Rate
from queuepool.jobs.limits import Limit, places_asked
from queuepool.payload.envelope import Envelope, encode
from queuepool.payload.limits import job_word
from queuepool.stores.contract import NewJob
from tests.chaos.overruns import OVERRUN

STREAM, QUEUE = "p", "limited"
TENANTS = "abc"
FEW = Concurrency("few", 2)
EACH = Concurrency("each", 1, by="{tenant}")
SHARED = Concurrency("shared", 3, fair="{tenant}")
PACED = Rate("paced", 8, per=1.5)
#: by the names of their handlers
KINDS: Mapping[str, tuple[Limit, ...]] = {
    "Chaos@few": (FEW,),
    "Chaos@tenant": (EACH, SHARED),
    "Chaos@paced": (PACED,),
    "Chaos@many": (PACED, FEW, EACH),
}
#: a queue with a limit of its own, of all pools: that of the steps
LIMITED_QUEUE, AT_ONCE = "steps", 2
OF_THE_QUEUE = f"queue:{LIMITED_QUEUE}"
#: what is said of each limit by code: how many, in how many seconds, 0.0 = at a time
LIMITS = {one.name: (one.number, one.seconds) for one in (FEW, EACH, SHARED, PACED)} | {OF_THE_QUEUE: (AT_ONCE, 0.0)}
#: all keys at which there are places
KEYS = ("few", "shared", "paced", OF_THE_QUEUE, *(f"each={tenant}" for tenant in TENANTS))
#: jobs that wait, ready or parked, from which on no more are pushed
MOST_WAITING = 40
#: most jobs of one push
_MOST = 8
#: how they end: most of them by themselves
_MODES = (*["nap"] * 6, "stepped", "kill", "segfault", "raise", "release", "fail", "leave_a_child", "hang_in_c")
#: the share of naps that are long
_LONG = 0.02
#: seconds for one that comes to its end by itself
_ENOUGH = 20.0


class Call(NamedTuple):
    """A job to push: the name of its handler, its arguments and its options."""

    name: str
    data: dict[str, Any]
    options: dict[str, Any]

    @classmethod
    def drawn(cls, chance: random.Random, name: str, mode: str = "", timeout: float = 0.0, long: float = 0.0) -> Call:
        """Seconds: ``timeout`` of one that does not end by itself; ``long`` of a nap that needs its lease renewed."""
        tenant, mode = chance.choice(TENANTS), mode or chance.choice(_MODES)
        ends = timeout if mode in OVERRUN else _ENOUGH
        nap = long if long and chance.random() < _LONG else round(chance.uniform(0.01, 0.3), 3)
        own = {"nap": {"seconds": nap}, "release": {"delay": 0.2}, "leave_a_child": {"seconds": 60}}
        keys = [one.key for one in _asked(name, tenant)]
        facts = {"m": mode, "at": keys, "timeout": ends, **own.get(mode, {})}
        return cls(name, {"tenant": tenant, "facts": facts}, {"timeout": ends, "maxTries": 0})

    def payload(self, job_id: str, **about: Any) -> bytes:
        envelope = Envelope(int(time.time()), options=self.options, **about)
        return encode(self.name, self.data, envelope, job_id)[1]

    def job(self, job_id: str, *, is_known: bool) -> NewJob:
        """``is_known``: whether whoever pushes it knows its limits."""
        asked = _asked(self.name, self.data["tenant"]) if is_known else ()
        return NewJob(self.payload(job_id), None, job_word(job_id), asked)


def _asked(name: str, tenant: str) -> Any:
    return places_asked(KINDS[name], None, (), {"tenant": tenant})


def drawn(chance: random.Random, first: int, **about: Any) -> list[NewJob]:
    """Some of one kind, with the numbers from ``first`` on; ``about`` as of ``Call.drawn``."""
    name, is_known = chance.choice(sorted(KINDS)), chance.random() < 0.5
    calls = (Call.drawn(chance, name, **about) for _ in range(chance.randint(1, _MOST)))
    return [call.job(f"{STREAM}.{number}", is_known=is_known) for number, call in enumerate(calls, first)]
