"""Things done with many jobs: in the background, a batch at a time, until they are done or somebody stops them."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from queuepool.errors import StoreError
from queuepool.operating.carrying_out import carry_out_all, remarks_on, told
from queuepool.search.bulk import Act, Bulk
from queuepool.search.found import FoundJob
from queuepool.web.guard import Refusal
from queuepool.web.visitors import Visitor

#: errands that are under way at once, and those that are remembered
_MOST_AT_ONCE, _MOST = 4, 100
#: seconds for which who began one waits to see its end
_PATIENCE = 1.5
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
        so_far = told(self.bulk.done, self.plan.done, f" on connection {self.plan.connection}")
        if not self.over.is_set():
            return f"{so_far} so far"
        end = f"not finished: {self.problem}; " if self.problem else "stopped; " if self.is_stopped else ""
        unnoted = [f"the journal has no line of this: {self.unnoted}"] if self.unnoted else []
        return "; ".join([f"{end}{so_far}", *remarks_on(self.bulk.done), *unnoted])

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id, "verb": self.plan.verb, "connection": self.plan.connection, "state": self.state,
            "done": self.bulk.done.count, "total": self.plan.total, "by": self.visitor.name, "began": self.began,
            "words": self.words, "back": self.plan.back,
        }  # fmt: skip


class Errands:
    """Those of one dashboard. Safe for threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE, "queuepool-errand")
        self._known: OrderedDict[str, WebErrand] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, plan: ErrandPlan, visitor: Visitor, pages: Iterable[Sequence[FoundJob]], act: Act) -> WebErrand:
        """Begin it, and wait a moment for its end. Raises ``Refusal`` if the same one, or too many, are under way."""
        errand = WebErrand(plan, visitor)
        with self._lock:
            running = [one for one in self._known.values() if not one.over.is_set()]
            if any((one.plan.verb, one.plan.connection) == (plan.verb, plan.connection) for one in running):
                raise Refusal(409, f"the same is under way on connection {plan.connection}: wait for its end")
            if len(running) >= _MOST_AT_ONCE:
                raise Refusal(409, f"{len(running)} such actions are under way: wait for the end of one")
            self._known[errand.id] = errand
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        self._threads.submit(self._run, errand, pages, act)
        errand.over.wait(_PATIENCE)
        return errand

    def known(self, errand_id: str) -> WebErrand:
        """Raises ``Refusal``."""
        with self._lock:
            if errand_id in self._known:
                return self._known[errand_id]
        raise Refusal(404, "there is no such action, or it was long ago")

    def close(self) -> None:
        """Stop all of them after the batches under way; does not wait."""
        with self._lock:
            for one in self._known.values():
                one.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, errand: WebErrand, pages: Iterable[Sequence[FoundJob]], act: Act) -> None:
        plan, place = errand.plan, f" on connection {errand.plan.connection}"

        def note(verb: str, subject: str, count: int | None) -> None:
            errand.unnoted = plan.note(verb, subject, count)

        try:
            carry_out_all(errand.bulk, [(_until_stopped(errand, pages), act)], plan.verb, place, note)
        except StoreError as error:
            errand.problem = f"{error}, and perhaps some of the batch under way were {plan.done}"
        except Exception:
            _log.exception("%s on connection %s ended early", plan.verb, plan.connection)
            errand.problem = "an error of ours, which is in the log"
            raise
        finally:
            errand.over.set()


def _until_stopped(errand: WebErrand, pages: Iterable[Sequence[FoundJob]]) -> Iterator[Sequence[FoundJob]]:
    for page in pages:
        if errand.is_stopped:
            return
        yield page
