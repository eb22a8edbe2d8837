"""What goes to the server: the names of all keys, and what our scripts have in common among their arguments.

Laravel's keys are under ``queues:``, ours under ``queuepool:``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from queuepool.config.connections import tag_of
from queuepool.payload.kept_step import StepsEnd
from queuepool.payload.lease import Ending, Lease, Unlock
from queuepool.stores.kept_steps import STEPS_LAST

#: the special characters of a Redis pattern
_GLOB, _ESCAPED = re.compile(r"[\\*?\[\]^-]"), r"\\\g<0>"
#: jobs that one call may move; more would stall the server's other clients
BATCH = 1000
#: bytes that one step sends: more would make other clients wait, as the server reads a command as a whole
BATCH_BYTES = 1024 * 1024


class Keys:
    """The keys of a connection with this prefix; ``cache_prefix`` is the full prefix of Laravel's cache.

    Source: RedisQueue.php, getQueue (13.x). ``own``: what ours begin with, if not the prefix.
    """

    def __init__(self, prefix: str = "", cache_prefix: str = "", own: str | None = None) -> None:
        self._cache = cache_prefix
        self._prefix = prefix
        self._queues = f"{prefix}queues:"
        self._own_prefix = f"{prefix if own is None else own}queuepool:"
        self._quarantines = f"{self._own_prefix}quarantine:"
        self.failed = f"{self._own_prefix}failed"
        self.failed_times = f"{self._own_prefix}failed:times"
        self.pending = f"{self._own_prefix}failed:pending"
        self.pending_times = f"{self._own_prefix}failed:pending:times"
        self.tags = f"{self._own_prefix}tags"
        self.pools = f"{self._own_prefix}pools"
        self.down = f"{self._own_prefix}down"
        self.schedules = f"{self._own_prefix}schedules"

    @property
    def pattern(self) -> str:
        """A SCAN pattern that matches all keys of queues and few others."""
        return f"{_GLOB.sub(_ESCAPED, self._queues.removesuffix('s:'))}*"

    def queue_of(self, key: str) -> str | None:
        """The queue whose jobs, quarantined payloads or parked jobs this key holds; ``None`` for any other key."""
        for start in (self._quarantines, self.parked("")):
            if key.startswith(start):
                return key.removeprefix(start)
        if not key.startswith(self._queues) or key.endswith(":notify"):  # which may outlive the jobs
            return None
        return key.removeprefix(self._queues).removesuffix(":delayed").removesuffix(":reserved")

    def ready(self, queue: str) -> str:
        return f"{self._queues}{queue}"

    def history(self, grain: str, bucket: int) -> str:
        """The texts of one bucket of time, by writer."""
        return f"{self._own_prefix}history:{grain}:{bucket}"

    def delayed(self, queue: str) -> str:
        return f"{self._queues}{queue}:delayed"

    def reserved(self, queue: str) -> str:
        return f"{self._queues}{queue}:reserved"

    def notify(self, queue: str) -> str:
        return f"{self._queues}{queue}:notify"

    def quarantine(self, queue: str) -> str:
        return f"{self._quarantines}{queue}"

    def channel(self, queue: str) -> str:
        """The channel on which stewards learn of jobs that are due earlier than they know."""
        return f"{self._own_prefix}due:{queue}"

    @property
    def news(self) -> str:
        """The channel on which stewards learn that operators have sent or done something. No queue has its name."""
        return f"{self._own_prefix}due:"

    def laravel(self, name: str) -> str:
        """A key that Laravel gives to Redis itself, past its queue and its cache."""
        return f"{self._prefix}{name}"

    def lock(self, name: str) -> str:
        """A lock in Laravel's cache. Source: RedisLock.php (13.x)."""
        return f"{self._cache}{name}"

    def lock_of(self, key: str) -> str:
        """The lock's name without the cache's prefix."""
        return key.removeprefix(self._cache)

    def locks_pattern(self, start: str) -> str:
        """A SCAN pattern that matches the locks whose names begin like this."""
        return f"{_GLOB.sub(_ESCAPED, self._cache + start)}*"

    @property
    def place(self) -> str:
        """The id of this place, for jobs that come from other stores."""
        return f"{self._own_prefix}place"

    def arrival(self, number: str) -> str:
        """What became of a job that was to come from another store."""
        return f"{self._own_prefix}arrived:{number}"

    def state(self, job_id: str) -> str:
        """The state of a tracked job."""
        return f"{self._own_prefix}job:{job_id}"

    def book(self, book: str) -> str:
        """The texts of a book."""
        return f"{self._own_prefix}notes:{book}"

    def alert(self, alert: str) -> str:
        """The key of the pool that sends the notices of an alert."""
        return f"{self._own_prefix}alert:{alert}"

    def attempts(self, queue: str) -> str:
        """The records of a queue's attempts."""
        return f"{self._own_prefix}attempts:{queue}"

    def steps(self, job_id: str) -> str:
        """What is kept of a job's steps."""
        return f"{self._own_prefix}steps:{job_id}"

    @property
    def room(self) -> str:
        """A key that never exists, to ask whether the server has room for one."""
        return f"{self._own_prefix}room"

    def tallies(self, job_id: str) -> str:
        return f"{self._own_prefix}tallies:{job_id}"

    @property
    def limits(self) -> str:
        """The limits by name."""
        return f"{self._own_prefix}limits"

    @property
    def places(self) -> str:
        """The keys at which each holder has places."""
        return f"{self._own_prefix}limits:places"

    @property
    def limits_due(self) -> str:
        """The keys of limits at which a job waits, by the second at which a steward must look."""
        return f"{self._own_prefix}limits:due"

    def of_limit(self, kind: str, place: str) -> str:
        """What there is of this kind at the key of a limit, as ``limits.lua`` has it."""
        return f"{self._own_prefix}limit:{kind}:{place}"

    def parked(self, queue: str) -> str:
        """The jobs of a queue that wait for a place of a limit."""
        return f"{self._own_prefix}parked:{queue}"

    @property
    def last_parked(self) -> str:
        """The number of the last job that was parked."""
        return f"{self._own_prefix}limits:last"

    @property
    def beginnings(self) -> tuple[str, str]:
        """How our own keys begin, and those of queues."""
        return self._own_prefix, self._queues

    @property
    def flows(self) -> str:
        """The ids of flows, by the second at which a steward must look."""
        return f"{self._own_prefix}flows"

    @property
    def begun_flows(self) -> str:
        """The ids of those that have begun and not ended, by when they began."""
        return f"{self.flows}:begun"

    @property
    def stopped_flows(self) -> str:
        return f"{self._own_prefix}flows:stopped"

    def flow(self, flow_id: str) -> str:
        """The facts of a flow; its other keys begin alike."""
        return f"{self._own_prefix}flow:{flow_id}"

    def of_flow(self, flow_id: str) -> tuple[list[str], list[str]]:
        """The keys and the first arguments that ``flow.lua`` wants, without the clock."""
        own = self.flow(flow_id)
        names = [own, *(f"{own}:{end}" for end in ("letters", "waiting", "results", "todo", "held"))]
        return [*names, self.flows, self.stopped_flows], [flow_id, self._queues, self.channel("")]


class TaggedKeys(Keys):
    """The keys of the queues with this hash tag, on a cluster where each has its own; ours beside them have it, too.

    Queues are named in any way that has the tag: ``{mail}`` and ``mail`` are one, as their keys are the same.
    Source: RedisQueue.php, getQueueRedisKey; Connection.php, hasHashTag (13.5).
    """

    def __init__(self, prefix: str, tag: str, cache_prefix: str = "") -> None:
        super().__init__(prefix, cache_prefix, own=f"{prefix}{{{tag}}}:")
        self.tag = tag

    @property
    def patterns(self) -> tuple[str, str]:
        """SCAN patterns that match all keys of queues, of any tag, and few others."""
        prefix = _GLOB.sub(_ESCAPED, self._prefix)
        return f"{prefix}queues:*", f"{prefix}{{*}}:queuepool:quarantine:*"

    def queue_in(self, key: str) -> str | None:
        """As ``queue_of``, for a key of any tag."""
        return TaggedKeys(self._prefix, tag_of(key)).queue_of(key)

    def ready(self, queue: str) -> str:
        return super().ready(self._named(queue))

    def delayed(self, queue: str) -> str:
        return super().delayed(self._named(queue))

    def reserved(self, queue: str) -> str:
        return super().reserved(self._named(queue))

    def notify(self, queue: str) -> str:
        return super().notify(self._named(queue))

    def quarantine(self, queue: str) -> str:
        return super().quarantine(self._named(queue))

    def channel(self, queue: str) -> str:
        return super().channel(self._named(queue))

    def attempts(self, queue: str) -> str:
        return super().attempts(self._named(queue))

    def _named(self, queue: str) -> str:
        return braced(queue or self.tag)  # none, where there is nothing to push, must be in the slot, too

    @property
    def tags_in_use(self) -> str:
        """Of the home alone: the hash tags whose queues were served or hold tracked jobs; a sorted set."""
        return f"{self._own_prefix}tags-in-use"


def braced(queue: str) -> str:
    """The queue's name in its keys: it has a hash tag there."""
    return queue if tag_of(queue) else f"{{{queue}}}"


def by_queue(leases: Sequence[Lease], queues: Sequence[str]) -> Sequence[Lease]:
    """The leases in the order of their queues. Raises ``ValueError`` for a queue that is not among several."""
    return leases if len(queues) == 1 else sorted(leases, key=lambda lease: queues.index(lease.queue))


def following(ending: Ending, unlocks: Sequence[Unlock], keys: Keys) -> tuple[list[str], list[Any]]:
    """Keys and arguments for ``follow.lua``; none for an empty ending."""
    if not (ending.outcome or ending.unlocks or ending.state):
        return [], []
    queue, payload = ending.outcome or ("", b"")
    job_id, text, seconds = ending.state or ("", b"", 0.0)
    names = [keys.ready(queue), keys.notify(queue), keys.state(job_id), *(keys.lock(lock.name) for lock in unlocks)]
    return names, [payload, text, whole(seconds), *(lock.owner for lock in unlocks)]


def with_steps(
    end: StepsEnd, keys: Keys, name: str, names: Sequence[str], args: Sequence[Any]
) -> tuple[str, Sequence[str], Sequence[Any]]:
    """The script with its keys and arguments, within ``end_steps.lua``."""
    places = [word for pair in end.places for word in pair]
    lasts = "0" if end.forget else whole(STEPS_LAST + end.delay)
    return f"steps:{name}", [*names, keys.steps(end.job_id)], [*args, *places, len(places), lasts]


def with_places(
    around: str,
    leases: Sequence[Lease],
    keys: Keys,
    clock: str,
    name: str,
    names: Sequence[str],
    args: Sequence[Any],
) -> tuple[str, Sequence[str], Sequence[Any]]:
    """The script within one for the places that these leases may hold."""
    words = [*keys.beginnings, clock, *(lease.holder for lease in leases), len(leases)]
    return f"{around}{name}", names, [*args, *words]


def whole(seconds: float) -> int:
    """Whole seconds for Redis, at least 1."""
    return max(math.ceil(seconds), 1)
