"""The scripts that end leases, run with the records of the attempts that end with them; see ``keep.lua``."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from queuepool.errors import StoreDenied
from queuepool.payload.lease import AttemptRecord, Lease
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.scripts import KEEP, PLACES, ScriptCall
from queuepool.stores.redis.wire import Keys, with_places, with_steps

_QUEUE_AND_TAG = itemgetter(0, 2)
#: of a lease beside others that have records
_NOTHING = AttemptRecord("", "", "", 0.0)
#: seconds for which no record is sent after one was denied
_DENIED = 60.0
_log = logging.getLogger("queuepool")


class PayloadPlaces(NamedTuple):
    """Which arguments of a script are payloads: counted from 1, those of one queue and tag, and then of the next."""

    first: int
    #: to the next payload
    step: int = 1
    #: words before those of the next queue and tag
    between: int = 0


class EndingScripts:
    """Runs them on one connection. No job waits for its record: if that is denied, the leases end without.

    ``leases``: those that the script ends, whose receipts are its arguments at these ``places``. All have records.
    """

    def __init__(self, client: RedisClient, keys: Keys, clock: Callable[[], str]) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        #: until when records are left out (monotonic)
        self._denied_until = 0.0

    def end(
        self, leases: Sequence[Lease], places: PayloadPlaces, name: str, keys: Sequence[str], args: Sequence[Any]
    ) -> Any:
        """Run the script that ends these leases, with all that ends with them."""
        call = name, keys, args
        if leases and leases[0].holder:
            call = with_places(PLACES, leases, self._keys, self._clock(), *call)
        if leases and (steps := leases[0].steps):  # around all others, as it is left out where it is denied
            call = with_steps(steps, self._keys, *call)
        if leases and leases[0].record:
            return self.run(leases, places, *call)[0]
        return self._client.script(*call)

    def run(self, leases: Sequence[Lease], places: PayloadPlaces, *plain: Any) -> tuple[Any, str]:
        """Run the script with this name, keys and arguments; returns the answer, and the name of what has given it."""
        if call := self.call(leases, places, *plain):
            try:
                return self._client.script(*call), call[0]
            except StoreDenied as denied:
                self.leave_out(denied)
        return self._client.script(*plain), plain[0]

    def run_ahead(self, leases: Sequence[Lease], places: PayloadPlaces, *plain: Any) -> Callable[[], tuple[Any, str]]:
        """As ``run``, but only sends it; if the records are denied, so is the whole, and the next has none."""
        call = self.call(leases, places, *plain) or plain
        return partial(self._read, call[0], self._client.script_ahead(*call))

    def _read(self, name: str, answer: Callable[[], Any]) -> tuple[Any, str]:
        try:
            return answer(), name
        except StoreDenied as denied:
            self.leave_out(denied)
            raise

    def leave_out(self, denied: StoreDenied) -> None:
        """Send no record for a while."""
        # The server asks for the right to all keys of a script before it begins, so nothing was done.
        self._denied_until = time.monotonic() + _DENIED
        _log.warning("no attempts are recorded for the next minute: %s", denied)

    def call(
        self, leases: Sequence[Lease], places: PayloadPlaces, name: str, keys: Sequence[str], args: Sequence[Any]
    ) -> ScriptCall | None:
        """The script's name, keys and arguments, made to keep the records; ``None`` while they are left out."""
        if time.monotonic() < self._denied_until:
            return None
        first = leases[0].record or _NOTHING
        if len(leases) == 1:  # as of a worker that settles one by one: the rest would be half of what a record costs it
            numbers = f"{math.ceil(first.seconds)} 1 1 {places.first} {places.step} 1"
            own = [*keys, self._keys.attempts(leases[0].queue)]
            return f"{KEEP}{name}", own, [*args, f"{first.by}\n{first.text}", numbers]
        place, runs, texts = places.first, "", dict[str, list[str]]()
        for (queue, _), group in groupby(leases, key=_QUEUE_AND_TAG):
            records = [lease.record or _NOTHING for lease in group]
            lines = texts.setdefault(queue, [first.by])
            lines += [one.text if one.by is first.by else one.text + one.by for one in records]
            runs += f" {list(texts).index(queue) + 1} {place} {places.step} {len(records)}"
            place += places.step * len(records) + places.between
        return (
            f"{KEEP}{name}",
            [*keys, *map(self._keys.attempts, texts)],
            [*args, *map("\n".join, texts.values()), f"{math.ceil(first.seconds)} {len(texts)}{runs}"],
        )
