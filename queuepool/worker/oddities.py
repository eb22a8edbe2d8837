"""What is odd in the payloads of one worker's jobs, and what is lost of them: each said once for each name of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadArguments, StoreError
from queuepool.events import PayloadOdd
from queuepool.events.listeners import Listeners
from queuepool.payload.envelope import Payload
from queuepool.payload.unique_locks import names_of
from queuepool.payload.wrappers import Claim
from queuepool.settlement.endings import Endings
from queuepool.settlement.facts import facts_of
from queuepool.stores.locks import LocksOf
from queuepool.worker.plan import Plan

#: an id of a lock that is looked for: how many of a job's arguments, and how many characters
_MOST, _LONGEST = 10, 100


class Oddities:
    """Reports them. ``pause`` is called before an event is emitted; ``locks_of`` finds locks that no payload names."""

    def __init__(
        self,
        connection: ConnectionSettings,
        listeners: Listeners,
        endings: Endings,
        locks_of: LocksOf,
        pause: Callable[[], object],
    ) -> None:
        self._drops = connection.foreign == "ignore"
        self._listeners = listeners
        self._endings = endings
        self._locks_of = locks_of
        self._pause = pause
        #: (name of the job, kind of warning)
        self._warned: set[tuple[str, str]] = set()
        #: names of the object jobs whose locks have been looked for
        self._seen: set[str] = set()

    def report(self, payload: Payload, queue: str, plan: Plan, claim: Claim | None) -> None:
        """Report what is odd in this payload, by what is known of its job."""
        is_strange = plan.is_object_job and (self._drops or payload.name not in self._seen)
        if not (payload.warnings or plan.warning or payload.context is not None or claim or is_strange):
            return
        for kind, warning in (*self._found(payload, plan), *(self._of_object_job(payload, plan) if is_strange else ())):
            if warning and (payload.name, kind) not in self._warned:
                self._warned.add((payload.name, kind))
                self._pause()
                self._listeners.emit(PayloadOdd(facts_of(payload, queue), warning))

    def _found(self, payload: Payload, plan: Plan) -> Iterator[tuple[str, str]]:
        """Each kind, and its words; that of a lock without regard to its key."""
        yield from ((warning, warning) for warning in (*payload.warnings, plan.warning))
        yield "unique lock", self._endings.warning(payload)

    def _of_object_job(self, payload: Payload, plan: Plan) -> Iterator[tuple[str, str]]:
        yield "dropped", self._endings.dropped(payload)
        if plan.handler and payload.name not in self._seen:
            self._seen.add(payload.name)
            if not plan.is_unique and not self._endings.held_locks(payload):
                yield "unnamed lock", self._unnamed_lock(payload)

    def _unnamed_lock(self, payload: Payload) -> str:
        """The lock of a class whose payloads do not name it, as before 11.39 and by ``Schedule::job()``; one look.

        The id is made in PHP. None is the usual one, or one of the arguments; releasing a guess might end the lock of
        another job.
        """
        try:
            arguments = self._endings.commands.of(payload).arguments.values()
            words = [str(one) for one in arguments if type(one) in (str, int)][:_MOST]
            ids = ["", *(word for word in words if len(word) <= _LONGEST)]
            job, display_name = payload.name, payload.options.display_name
            held = [*self._locks_of.owners([name for one in ids for name in names_of(job, display_name, one)])]
        except (BadArguments, StoreError):
            return ""
        return (
            f"the unique lock {held[0]!r} stays held: no payload names it, so give its handler unique_id"
            if held
            else ""
        )
