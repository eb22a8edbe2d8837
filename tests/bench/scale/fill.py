"""A million jobs in seconds: made in the server, by a script, and moved to where they are wanted by their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from queuepool.payload.envelope import Envelope, encode
from queuepool.stores.redis.wire import Keys
from tests.bench.rig import Rig

#: a number in the payload, in whose place the script writes another: no two jobs are the same bytes
_PLACE = 999_999_999
#: jobs that one call of the script makes, and bytes
_CALL, _BYTES = 50_000, 50_000_000
#: seconds from now at which jobs are due that are not to become due
_LATER = 86_400
_MAKE = """
local first, jobs, head, tail, later = unpack(ARGV)
local score = redis.call('time')[1] + later
for n = first, first + jobs - 1 do
  local job = head .. string.format('%d', 100000000 + n) .. tail
  if KEYS[2] then
    redis.call('rpush', KEYS[1], job)
    redis.call('rpush', KEYS[2], 1)
  else
    redis.call('zadd', KEYS[1], score, job)
  end
end
"""
_RENAME = """
for i = 1, #KEYS, 2 do
  if redis.call('exists', KEYS[i]) == 1 then redis.call('rename', KEYS[i], KEYS[i + 1]) end
end
"""


class Filler:
    """Of one server's queues."""

    #: seconds between two looks
    pause = 0.002

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._keys = Keys(rig.connection.prefix)

    def waiting(self, queue: str, jobs: int, job: str = "noop", padding: str = "") -> None:
        self._make(jobs, [self._keys.ready(queue), self._keys.notify(queue)], job, padding)

    def delayed(self, queue: str, jobs: int) -> None:
        self._make(jobs, [self._keys.delayed(queue)])

    def reserved(self, queue: str, jobs: int) -> None:
        """By somebody whose leases last."""
        self._make(jobs, [self._keys.reserved(queue)])

    def move(self, source: str, target: str) -> None:
        """All of a queue at once; nothing may be there where it comes to."""
        keys = self._keys
        self._rename(source, target, [keys.delayed, keys.reserved, keys.ready, keys.notify])

    def take_back(self, source: str, target: str) -> None:
        """What waits to be begun: what is in a worker's hand stays its own."""
        self._rename(source, target, [self._keys.ready, self._keys.notify])

    def left(self, queue: str) -> int:
        """How many wait to be begun."""
        return int(self._ask("LLEN", self._keys.ready(queue)))

    def empty(self, queue: str) -> None:
        """No worker may hold any of it."""
        keys = self._keys
        self._ask("UNLINK", keys.ready(queue), keys.notify(queue), keys.delayed(queue), keys.reserved(queue))

    def _make(self, jobs: int, keys: Sequence[str], job: str = "noop", padding: str = "") -> None:
        data = {"n": _PLACE, "padding": padding} if padding else {"n": _PLACE}
        _, raw = encode(job, data, Envelope(created_at=1))
        head, tail = raw.split(str(_PLACE).encode())
        at_once = max(1, min(_CALL, _BYTES // len(raw)))
        for first in range(0, jobs, at_once):
            self._ask("EVAL", _MAKE, len(keys), *keys, first, min(at_once, jobs - first), head, tail, _LATER)

    def _rename(self, source: str, target: str, makers: Sequence[Callable[[str], str]]) -> None:
        keys = [key for make in makers for key in (make(source), make(target))]
        self._ask("EVAL", _RENAME, len(keys), *keys)

    def _ask(self, *words: Any) -> Any:
        return self._rig.stores.client.command(*words)
