"""What was asked for by forms: each is done once, however often it is sent, and what came of it is kept for a while."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from queuepool.web.acts.acted import Acted
from queuepool.web.guard import Refusal

#: actions that are remembered, and those that are under way or wait for it
_MOST, _MOST_AT_ONCE = 200, 64
#: those that are under way with one of several stores: the others have threads of their own
MOST_OF_ONE = 4


@dataclass(frozen=True, slots=True)
class Submission:
    """One that was begun."""

    id: str
    future: Future[Acted | Refusal]
    #: of the store that it acts on; empty if that does not matter
    place: str = ""

    @property
    def came(self) -> Acted | Refusal | None:
        """What came of it; ``None`` while it is under way."""
        if self.future.cancelled():
            return Refusal(503, "the dashboard ended before this was begun")
        return self.future.result() if self.future.done() else None

    async def wait(self, seconds: float) -> None:
        """Wait for its end, but no longer; it goes on all the same."""
        loop, is_over = asyncio.get_running_loop(), asyncio.Event()

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # under WSGI each request has a loop of its own, which may be closed by now
                loop.call_soon_threadsafe(is_over.set)

        self.future.add_done_callback(tell)
        with suppress(TimeoutError):
            await asyncio.wait_for(is_over.wait(), seconds)

    @property
    def outcome(self) -> Acted | None:
        """The same, for a page."""
        found = self.came
        return Acted(found.words, "/", is_good=False) if isinstance(found, Refusal) else found


class Submissions:
    """Those of one dashboard, which are done in ``threads``. Safe for threads."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._kept: OrderedDict[str, Submission] = OrderedDict()
        #: those that are not to be done again, by what was sent
        self._once: dict[str, Submission] = {}
        self._lock = threading.Lock()

    def take(self, sent: str, do: Callable[[], Acted | Refusal], place: str = "") -> tuple[Submission, bool]:
        """Begin it, unless the same was ``sent`` before; and whether it was. An empty text is never the same.

        That of which surely nothing was done may be sent again: it is tried anew. Raises ``Refusal`` if too many are
        under way, or with the store of this ``place``, if one is given.
        """
        with self._lock:
            if sent in self._once:
                return self._once[sent], True
            running = [one.place for one in self._kept.values() if not one.future.done()]
            if len(running) >= _MOST_AT_ONCE:
                raise Refusal(503, f"{_MOST_AT_ONCE} actions are under way: wait for the end of one")
            if place and running.count(place) >= MOST_OF_ONE:
                raise Refusal(503, f"{MOST_OF_ONE} actions wait for this store: wait for the end of one")
            found = Submission(secrets.token_hex(8), self._threads.submit(self._done, sent, do), place)
            self._kept[found.id] = found
            if sent:
                self._once[sent] = found
            self._make_room()
            return found, False

    def get(self, submission_id: str) -> Submission | None:
        """The one with this id, if it is remembered."""
        with self._lock:
            return self._kept.get(submission_id)

    def are_under_way(self) -> bool:
        """Whether any is."""
        with self._lock:
            return any(not one.future.done() for one in self._kept.values())

    def _done(self, sent: str, do: Callable[[], Acted | Refusal]) -> Acted | Refusal:
        came = do()
        # After an error of ours or of a store it is open how far it came: a job may have been pushed, unanswered.
        if came.status < 500 if isinstance(came, Refusal) else came.is_untouched:
            with self._lock:
                self._once.pop(sent, None)
        return came

    def _make_room(self) -> None:
        over = [one for one in self._kept.values() if one.future.done()][: max(len(self._kept) - _MOST, 0)]
        gone = {one.id for one in over}
        for one in gone:
            del self._kept[one]
        if gone:
            self._once = {sent: one for sent, one in self._once.items() if one.id not in gone}
