"""Moves jobs to a queue of another connection, whose store has no step in common with that of the first.

A job is put into a queue of its own store that nobody serves, in one step, as a parcel with a random number. From there
it is pushed to the other store, which writes in the same step that this number has come, and then the parcel is
dropped. Killed at any moment, a job is in one place: whoever finds its parcel pushes it again, and hears whether it has
come already. Any number of movers may do so at once. ``docs/design.md`` has the proof.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from queuepool.board.about import operator
from queuepool.config import values
from queuepool.config.urls import kind_of
from queuepool.config.values import ON_THEIR_WAY
from queuepool.errors import BadPayload, StoreError
from queuepool.payload import strict_json
from queuepool.payload.envelope import decode, uncounted, wanted_again
from queuepool.payload.lease import StateRecord
from queuepool.payload.signing import signer_of
from queuepool.search.bulk import Act
from queuepool.search.filters import may_be_encrypted
from queuepool.search.found import FoundJob
from queuepool.search.look import Look, QueueLook
from queuepool.settlement.held_locks import HeldLocks
from queuepool.settlement.states import cancelled, moved, pushed
from queuepool.stores.arrivals import KNOWN_FOR, Arrival
from queuepool.stores.contract import NO_SECOND, MovedJob, NewJob, QueueWalk, ShelfJob
from queuepool.stores.factory import Stores
from queuepool.stores.records import FailedJob, Retrying, Returned, json_in
from queuepool.stores.steps import PageSize

#: bytes of a job that can still be read with what is wrapped around it
_LARGEST = 12_000_000
#: parcels that are read at once, and seconds from before that within which they must have come
_PAGE, WITHIN = 50, 120.0
#: seconds after which a parcel is not pushed any more: it may soon be forgotten there that it has come
_OLDEST = KNOWN_FOR - 30 * 86400.0
_NUMBER = re.compile(r"[0-9a-f]{32}")


class Route(NamedTuple):
    """From ``origin`` to ``queue`` of another store: ``place`` is its id, ``connection`` names it for people."""

    origin: str
    place: str
    connection: str
    queue: str

    @property
    def names(self) -> tuple[str, str, str]:
        """The words of the command."""
        return self.origin, self.connection, self.queue

    def is_as(self, other: Route) -> bool:
        """Whether it is the same, whatever the connection is called."""
        return self == other._replace(connection=self.connection)


class Parcel(NamedTuple):
    """A job on its way, with the payload that it had; ``at``: since then, in Unix seconds of the other store."""

    number: str
    route: Route
    at: float
    payload: bytes

    @property
    def key(self) -> str:
        """The number under which it comes: of this payload only, as others can read the random one and use it again."""
        return hashlib.sha256(f"{self.number}:".encode() + self.payload).hexdigest()[:32]

    def packed(self) -> bytes:
        """As JSON in ASCII, which no worker takes for a job."""
        fields = {"number": self.number, **self.route._asdict(), "at": self.at}
        return json.dumps({**fields, "payload": b64encode(self.payload).decode()}).encode()

    @classmethod
    def unpacked(cls, raw: bytes) -> Parcel | None:
        """``None`` for anything else."""
        match json_in(raw):
            case {
                "number": str() as number, "origin": str() as origin, "place": str() as place, "queue": str() as queue,
                "connection": str() as connection, "at": int() | float() as at, "payload": str() as payload,
            }:  # fmt: skip
                with suppress(ValueError):
                    # Whoever may push can write one, which must not make a step fail for the others on its page.
                    text = b64decode(payload, validate=True).decode()
                    names = values.queue(origin), place, values.section_name(connection), values.queue(queue)
                    if _NUMBER.fullmatch(number) and "\0" not in text:
                        return cls(number, Route(*names), at, text.encode())
        return None


class Transfer:
    """Moves what ``look`` finds by this route to ``target``. Its methods raise ``StoreError``."""

    def __init__(self, look: Look, target: Stores, route: Route) -> None:
        source, settings = look.stores.settings, target.settings
        self._source, self._pace = look.stores, look.pace
        self._commands = look.commands
        self._target = target
        self._route = route
        self._finder = HeldLocks(source).waiting
        self._signers = [signer_of(one.signing, one.signing_keys) for one in (source, settings)]
        self._has_keys = {*source.app_keys} <= {*settings.app_keys}
        self._staying = dict[str, Counter[str]]()
        #: how many parcels have come there, now or before
        self.came = 0
        #: how many the other store did not take, by its reason: they went back
        self.refused = Counter[str]()
        #: parcels of other moves, and ours that are too old
        self.others = Counter[Route]()
        self.stale = 0

    @property
    def staying(self) -> Counter[str]:
        """How many jobs cannot go, by the reason."""
        return sum(self._staying.values(), Counter[str]())

    def finish(self) -> None:
        """Remove there what need not be known any more; if that fails, it is left to the next move."""
        with suppress(StoreError):
            self._target.arrivals.sweep()

    def left_over(self) -> Iterator[list[FoundJob]]:
        """The parcels that an earlier such move has left on their way, in pages."""
        self.others, self.stale, oldest = Counter[Route](), 0, self._target.queue.now() - _OLDEST

        def is_left(one: Parcel) -> bool:
            if not one.route.is_as(self._route):
                self.others[one.route] += 1
                return False
            self.stale += one.at < oldest
            return one.at >= oldest

        return self._parcels(is_left)

    def take_on(self, jobs: Sequence[FoundJob]) -> list[Returned]:
        """Bring these parcels there."""
        found = [Parcel.unpacked(job.raw) for job in jobs]
        back = self._deliver({one.key for one in found if one})
        return [_result(one, back) for one in found]

    def lost(self) -> Iterator[list[FoundJob]]:
        """The parcels of this way that are never brought: to a store that is not there any more, or of long ago."""
        oldest = self._target.queue.now() - _OLDEST

        def is_lost(one: Parcel) -> bool:
            is_there = one.route.place == self._route.place
            return one.route.names == self._route.names and (one.at < oldest or not is_there)

        return self._parcels(is_lost)

    def take_back(self, jobs: Sequence[FoundJob]) -> list[Returned]:
        """Put the jobs in these parcels back on their queue; what has come elsewhere is run there as well."""
        pairs = ((job.where, Parcel.unpacked(job.raw)) for job in jobs)
        found = [(job, one) for job, one in pairs if one and isinstance(job, ShelfJob)]
        return [Returned(int(is_back)) for is_back in self._pace(partial(self._send_back, found))]

    def going(self, pages: Iterable[Sequence[FoundJob]], kind: str) -> Iterator[list[FoundJob]]:
        """Those that can go; the others of this kind are counted anew."""
        self._staying[kind] = staying = Counter[str]()
        for page in pages:
            reasons = [self._why_stays(job) for job in page]
            staying.update(filter(None, reasons))
            yield [job for job, reason in zip(page, reasons, strict=True) if not reason]

    def of_waiting(self, found: QueueLook) -> Act:
        """Moves jobs that were found ready or delayed; they keep the times at which they are due."""

        def act(jobs: Sequence[FoundJob]) -> Iterator[Returned]:
            for step in self._source.queue.steps([job.where for job in jobs if isinstance(job.where, ShelfJob)]):
                parcels = [self._parcel(job.payload) for job in step]
                answers = self._pace(partial(self._send, step, parcels))
                found.taken(job for job, is_gone in zip(step, answers, strict=True) if is_gone)
                gone = [one if is_gone else None for one, is_gone in zip(parcels, answers, strict=True)]
                back = self._deliver({one.key for one in gone if one})
                yield from (_result(one, back) for one in gone)

        return act

    def of_failed(self, jobs: Sequence[FoundJob]) -> list[Returned]:
        """Moves failed jobs."""
        records = [job.where for job in jobs if isinstance(job.where, FailedJob)]
        parcels = [self._parcel(_again(one)) for one in records]
        going = [
            Retrying(replace(one, payload=parcel.packed().decode()))
            for one, parcel in zip(records, parcels, strict=True)
        ]
        answers = self._pace(lambda: self._source.failed.retry_all(going, ON_THEIR_WAY))
        back = self._deliver({one.key for one, answer in zip(parcels, answers, strict=True) if answer})
        pairs = zip(parcels, answers, strict=True)
        return [_result(one, back) if answer else answer for one, answer in pairs]

    def _why_stays(self, job: FoundJob) -> str:
        """Why a job cannot go; empty if it can."""
        raw = job.raw
        if self._finder.may_hold(raw) and self._finder.locks_of(raw):
            return "a unique lock is held"
        if len(raw) > _LARGEST:
            return f"more than {_LARGEST // 1_000_000} MB"
        if not self._has_keys and may_be_encrypted(raw):
            return f"encrypted with a key that {self._route.connection} lacks"
        if isinstance(job.where, ShelfJob) and not _is_due(job.where):
            return "due at no time"
        try:
            self._there(_again(job.where) if isinstance(job.where, FailedJob) else raw)
        except BadPayload as error:
            return f"a worker would set it aside: {error.reason}"
        return ""

    def _there(self, raw: bytes) -> bytes:
        """The payload as it is pushed there. Raises ``BadPayload`` if a worker here or there would set it aside."""
        ours, theirs = self._signers
        if ours:  # else a job that nobody trusts here would be run where nobody looks at signatures
            ours.verify(raw, self._route.origin)
        signed = ours.moved(raw, self._route.origin, self._route.queue, theirs) if ours and theirs else raw
        payload = _begun_anew(signed, is_redis=kind_of(self._target.settings.url) == "redis")
        if theirs:
            theirs.verify(payload, self._route.queue)
        else:
            decode(payload)
        return payload

    def _parcel(self, raw: bytes) -> Parcel:
        return Parcel(secrets.token_hex(16), self._route, self._target.queue.now(), raw)

    def _send(self, jobs: Sequence[ShelfJob], parcels: Sequence[Parcel]) -> list[bool]:
        why = f"moved to queue {self._route.queue} of connection {self._route.connection} by {operator()}"
        states = [cancelled(job.payload, job.attempts, self._route.origin, why) for job in jobs]
        raws = [one.packed() for one in parcels]
        return self._source.queue.move(self._route.origin, [*map(MovedJob, jobs, raws, states)], ON_THEIR_WAY)

    def _parcels(self, is_meant: Callable[[Parcel], bool]) -> Iterator[list[FoundJob]]:
        """Those that are meant, in pages: all are read before anything is done with them."""
        walk, size, pages = self._walk(), PageSize(), list[list[FoundJob]]()
        while (page := self._page(walk, size)) is not None:
            meant = [job for job, one in page if is_meant(one)]
            pages.append([FoundJob.waiting(job, ON_THEIR_WAY, self._commands) for job in meant])
        return iter(pages)

    def _walk(self) -> QueueWalk:
        return self._source.queue.walk(ON_THEIR_WAY, ("ready", "delayed"))

    def _page(self, walk: QueueWalk, size: PageSize) -> list[tuple[ShelfJob, Parcel]] | None:
        """The next parcels that are on their way; ``None`` at the end."""
        page = self._pace(lambda: walk.page(min(size.jobs, _PAGE)))
        if not page:
            return None
        size.fit(len(job.payload) for job in page)
        found = ((job, Parcel.unpacked(job.payload)) for job in page if job.shelf != "reserved" and _is_due(job))
        return [(job, one) for job, one in found if one]

    def _deliver(self, keys: Collection[str]) -> set[str]:
        """Bring the parcels with these keys there; returns those that went back to their queue.

        Those that are not there any more were brought by another mover.
        """
        walk, size, met, back = self._walk(), PageSize(), set[str](), set[str]()
        while len(met) < len(keys):
            # Before they are read: of what lies here later than this, it is still known there whether it has come.
            until = self._target.queue.now() + WITHIN
            page = self._page(walk, size)
            if page is None:
                break
            ours = [(job, one) for job, one in page if one.key in keys]
            met |= {one.key for _, one in ours}
            back |= self._bring(walk, ours, until) if ours else set()
        return back

    def _bring(self, walk: QueueWalk, ours: Sequence[tuple[ShelfJob, Parcel]], until: float) -> set[str]:
        """Push these, then take them out of the way; returns those that went back."""
        came, refused = list[tuple[ShelfJob, Parcel]](), list[tuple[ShelfJob, Parcel]]()
        for job, one in ours:
            (came if self._pushed(job, one, until) is Arrival.CAME else refused).append((job, one))
        gone = self._pace(partial(self._source.queue.drop, ON_THEIR_WAY, [job for job, _ in came]))
        gone += self._pace(partial(self._send_back, refused))
        over = [pair for pair, is_gone in zip([*came, *refused], gone, strict=True) if is_gone]
        walk.taken([job for job, _ in over])
        if over:
            self._target.arrivals.forget([one.key for _, one in over])
        return {one.key for _, one in refused}

    def _pushed(self, job: ShelfJob, one: Parcel, until: float) -> Arrival:
        try:
            payload = self._there(one.payload)
            new = NewJob(payload, _first_state(payload, one.route.queue, job.at))
            arrival = self._target.arrivals.admit(one.route.queue, new, job.at, one.key, until)
            why = "it was refused before"
        except (BadPayload, StoreError) as error:
            # What was sent may still be on its way; where the store is away, this raises as well.
            arrival, why = self._target.arrivals.refuse(one.key), str(error)
        if arrival is Arrival.CAME:
            self.came += 1
        else:
            self.refused[why] += 1
        return arrival

    def _send_back(self, refused: Sequence[tuple[ShelfJob, Parcel]]) -> list[bool]:
        jobs = [
            MovedJob(job, one.payload, moved(one.payload, job.attempts, one.route.origin, job.at))
            for job, one in refused
        ]
        return self._source.queue.move(ON_THEIR_WAY, jobs, self._route.origin) if jobs else []


def _is_due(job: ShelfJob) -> bool:
    """Whether it is due at a time that every store can hold."""
    return job.at is None or 0 <= job.at < NO_SECOND


def _result(one: Parcel | None, back: Collection[str]) -> Returned:
    if one is None:
        return Returned.GONE
    return Returned.REFUSED if one.key in back else Returned.DONE


def _again(failed: FailedJob) -> bytes:
    return wanted_again(failed.payload).encode("utf-8", "replace")


def _begun_anew(raw: bytes, *, is_redis: bool) -> bytes:
    """The payload with no attempts; in Redis Laravel counts them there, and wants an id. Raises ``BadPayload``."""
    raw = uncounted(raw)
    fields = strict_json.read_object(raw) if is_redis else {}
    missing = {name: value for name, value in (("id", fields.get("uuid")), ("attempts", 0)) if name not in fields}
    if not fields or not missing:
        return raw
    return raw.rstrip()[:-1] + b"," + json.dumps(missing, separators=(",", ":")).encode()[1:]


def _first_state(raw: bytes, queue: str, due: float | None) -> StateRecord | None:
    """The state of a job that is tracked."""
    payload = decode(raw)
    if not payload.options.track:
        return None
    return pushed(payload.id, payload.name, queue, max((due or 0.0) - time.time(), 0.0))
