"""Things done with many jobs: in the background, a batch at a time, until they are done or somebody stops them."""

from __future__ import annotations

import atexit
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from queuepool.errors import StoreError
from queuepool.operating.carrying_out import carry_out_all, remarks_on, told
from queuepool.search.bulk import BATCH, Act, Bulk
from queuepool.search.found import FoundJob
from queuepool.unix.escape import counted
from queuepool.web.acts.acted import noted
from queuepool.web.guard import Refusal
from queuepool.web.visitors import Visitor

#: errands with all that fits that are under way at once; those with chosen jobs; and those that are remembered
_MOST_AT_ONCE, _MOST_CHOSEN, _MOST = 4, 8, 100
#: seconds for which who began one waits to see its end
_PATIENCE = 1.5
#: seconds for which the end of the process waits for the batches under way
_END_WITHIN = 10.0
_log = logging.getLogger("queuepool")


@dataclass(frozen=True, slots=True)
class ErrandPlan:
    """What is to be done: ``verb`` as a command calls it, ``done`` as in "put back"; ``total`` jobs at most."""

    verb: str
    done: str
    connection: str
    total: int
    back: str
    #: adds a line to the journal; returns why there is none
    note: Callable[[str, str, int | None], str]
    #: whether the jobs were chosen one by one: they are few, and nobody does all the same meanwhile
    is_chosen: bool = False

    @property
    def place(self) -> str:
        return f" on connection {self.connection}"

    def is_like(self, other: ErrandPlan) -> bool:
        """Whether both do the same with all that fits the same filters."""
        are_for_all = not (self.is_chosen or other.is_chosen)
        same = (self.verb, self.connection, self.back) == (other.verb, other.connection, other.back)
        return are_for_all and same


@dataclass
class WebErrand:
    """One that was begun."""

    plan: ErrandPlan
    visitor: Visitor
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    began: float = field(default_factory=time.time)
    bulk: Bulk = field(default_factory=lambda: Bulk(lambda _: None))
    is_stopped: bool = False
    #: why it ended early; and why the journal has no line of it
    problem: str = ""
    unnoted: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Do no more after the batch under way."""
        self.is_stopped = True

    @property
    def state(self) -> str:
        """In one word."""
        if not self.over.is_set():
            return "running"
        return "failed" if self.problem else "stopped" if self.is_stopped else "done"

    @property
    def words(self) -> str:
        """How far it is, or what came of it."""
        so_far = told(self.bulk.done, self.plan.done, self.plan.place)
        if not self.over.is_set():
            return f"{so_far} so far"
        end = f"not finished: {self.problem}; " if self.problem else "stopped; " if self.is_stopped else ""
        return noted("; ".join([f"{end}{so_far}", *remarks_on(self.bulk.done)]), self.unnoted)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id, "verb": self.plan.verb, "connection": self.plan.connection, "state": self.state,
            "done": self.bulk.done.count, "total": self.plan.total, "by": self.visitor.name, "began": self.began,
            "words": self.words, "back": self.plan.back,
        }  # fmt: skip


class Errands:
    """Those of one dashboard. Safe for threads.

    Each has a daemon thread, and is stopped when the process ends, though nobody closes the dashboard. Python would
    wait for the threads of an executor, or for others, before it calls what is registered with ``atexit``.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, WebErrand] = OrderedDict()
        self._is_closed = False
        self._lock = threading.Lock()
        atexit.register(self._end)

    def begin(self, plan: ErrandPlan, visitor: Visitor, pages: Iterable[Sequence[FoundJob]], act: Act) -> WebErrand:
        """Begin it, and wait a moment for its end. Raises ``Refusal`` if the same one, or too many, are under way."""
        errand = WebErrand(plan, visitor)
        with self._lock:
            if self._is_closed:
                raise Refusal(503, "the dashboard ends")
            running = [one.plan for one in self._running()]
            if any(one.is_like(plan) for one in running):
                raise Refusal(409, f"the same is under way on connection {plan.connection}: wait for its end")
            alike, most = (one for one in running if one.is_chosen == plan.is_chosen), _most(plan)
            if sum(1 for _ in alike) >= most:
                raise Refusal(409, f"{most} such actions are under way: wait for the end of one")
            threading.Thread(target=self._run, args=(errand, pages, act), name="queuepool-errand", daemon=True).start()
            self._kept[errand.id] = errand
            self._make_room()
        errand.over.wait(_PATIENCE)
        return errand

    def get(self, errand_id: str) -> WebErrand:
        """The one with this id. Raises ``Refusal``."""
        with self._lock:
            if errand_id in self._kept:
                return self._kept[errand_id]
        raise Refusal(404, "there is no such action, or it was long ago")

    def are_under_way(self) -> bool:
        """Whether any is."""
        with self._lock:
            return bool(self._running())

    def close(self) -> None:
        """Begin no more, and stop all of them after the batches under way; does not wait."""
        with self._lock:
            self._is_closed = True
            for one in self._kept.values():
                one.stop()
            is_over = not self._running()
        if is_over:
            atexit.unregister(self._end)

    def join(self) -> None:
        """After ``close``: wait for the batches under way."""
        self._wait(None)
        atexit.unregister(self._end)

    def _end(self) -> None:
        self.close()
        self._wait(time.monotonic() + _END_WITHIN)

    def _wait(self, until: float | None) -> None:
        with self._lock:
            running = self._running()
        for one in running:
            one.over.wait(None if until is None else max(until - time.monotonic(), 0.0))

    def _running(self) -> list[WebErrand]:
        return [one for one in self._kept.values() if not one.over.is_set()]

    def _make_room(self) -> None:
        """Forget the oldest that are over: one that runs has to be found by who wants to stop it."""
        over = [one.id for one in self._kept.values() if one.over.is_set()]
        for one in over[: max(len(self._kept) - _MOST, 0)]:
            del self._kept[one]

    def _run(self, errand: WebErrand, pages: Iterable[Sequence[FoundJob]], act: Act) -> None:
        plan = errand.plan

        def note(verb: str, subject: str, count: int | None) -> None:
            errand.unnoted = plan.note(verb, subject, count)

        try:
            if plan.total > BATCH:  # else a kill leaves no more without its line than it does of a command
                note(plan.verb, f"begun, at most {counted(plan.total, 'job')}{plan.place}", None)
            carry_out_all(errand.bulk, [(_until_stopped(errand, pages), act)], plan.verb, plan.place, note)
        except StoreError as error:
            errand.problem = f"{error}, and perhaps some of the batch under way were {plan.done}"
        except Exception:  # noqa: BLE001 - it is told on its page
            _log.exception("%s on connection %s ended early", plan.verb, plan.connection)
            errand.problem = "an error of ours, which is in the log"
        finally:
            errand.over.set()


def _most(plan: ErrandPlan) -> int:
    return _MOST_CHOSEN if plan.is_chosen else _MOST_AT_ONCE


def _until_stopped(errand: WebErrand, pages: Iterable[Sequence[FoundJob]]) -> Iterator[Sequence[FoundJob]]:
    for page in pages:
        if errand.is_stopped:
            return
        yield page
