"""The kept attempts in Redis: a list for each queue, to which ``keep.lua`` adds; see ``stores.attempts.Attempts``."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from queuepool.payload.lease import AttemptRecord
from queuepool.stores.attempts import TRIM_TAKES, KeptAttempt
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.wire import Keys

#: the most that one step reads: sheets, and bytes (one page more)
_READ, _READ_BYTES = 1000, 1_000_000
#: seconds for which a list outlives the last record that was added to it, if no steward trims it
_SPARE = 3600
#: an id that JSON leaves as it is
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)


class RedisAttempts:
    """The kept attempts of one connection."""

    def __init__(self, client: RedisClient, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def of_job(self, queue: str, job_id: str) -> Iterator[list[KeptAttempt]]:
        """As the contract says: it reads all of the queue's records, as they have no index."""
        return self._found(queue, f'"{job_id}"' if _PLAIN.fullmatch(job_id) else "")

    def pages(self, queue: str) -> Iterator[list[KeptAttempt]]:
        return self._found(queue, "")

    def _found(self, queue: str, text: str) -> Iterator[list[KeptAttempt]]:
        key, end = self._keys.attempts(queue), -1
        while end:
            end, *sheets = self._client.script("read_attempts", [key], [end, text, _READ, _READ_BYTES])
            yield [kept for sheet in sheets for kept in _read(queue, sheet)]

    def latest(self, queue: str, most: int, most_bytes: int) -> list[KeptAttempt]:
        """About the latest of the queue, in no order: of so many sheets and bytes, each plus a page."""
        _, *sheets = self._client.script("read_attempts", [self._keys.attempts(queue)], [-1, "", most, most_bytes])
        return [kept for sheet in sheets for kept in _read(queue, sheet)]

    def note(self, queue: str, records: Sequence[AttemptRecord]) -> None:
        second, kept = int(self._client.command("TIME")[0]), math.ceil(records[0].seconds)
        key, lost = self._keys.attempts(queue), ",".join(map(str, range(1, len(records) + 1)))
        lines = "".join(f"{record.text}{record.by}\n" for record in records)
        sheet = f"{second} {kept} {len(records)} {lost}\n\n{lines}" + "\0" * (len(records) - 1)
        if self._client.command("RPUSH", key, sheet) == 1:
            self._client.command("EXPIRE", key, max(kept, 0) + _SPARE)

    def trim(self, queue: str, most: int, most_bytes: int) -> int:
        removed, is_more, until = 0, 1, time.monotonic() + TRIM_TAKES
        while is_more and (not removed or time.monotonic() < until):
            found, is_more = self._client.script("trim_attempts", [self._keys.attempts(queue)], [most, most_bytes])
            removed += int(found)
        return removed


def _read(queue: str, sheet: bytes) -> Iterator[KeptAttempt]:
    """The records of a sheet, as ``keep.lua`` has written it; none of a damaged one."""
    with suppress(ValueError):
        _, _, number, lost = sheet.partition(b"\n")[0].split(b" ")
        _, by, *records, payloads = sheet.split(b"\n", int(number) + 2)
        refused = {int(one) for one in lost.split(b",") if one}
        for nth, (record, payload) in enumerate(zip(records, payloads.split(b"\0"), strict=True), start=1):
            # What a record says itself comes last, and so counts.
            yield KeptAttempt(queue, b"{%s}" % b",".join(filter(None, (by[1:], record))), payload, nth in refused)
