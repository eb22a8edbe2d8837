"""Counts one worker's attempts in its slot's meters (``board/meters.py`` says why each counts exactly once)."""

from __future__ import annotations

import time
from bisect import bisect_left

from queuepool.board import meters as layout
from queuepool.board.meters import BEGUN, RUN_BOUNDS, WAIT_BOUNDS, SlotMeters
from queuepool.payload.envelope import PUSHED_AT, Payload, due_at
from queuepool.settlement.verdict import Fail, Verdict

#: the first bound of run times; due times at or beyond the second are invalid (both in seconds)
_QUICK, _NEVER = RUN_BOUNDS[0], 1e11
#: most characters of the name of an exception's class
_MOST = 100


class Meter:
    """Used by the slot's worker alone.

    The begin and the end of an attempt are one memory store each. Waits, and the totals of seconds, are kept until the
    next ``look``, which comes within a millisecond or after the job; a kill loses no more than these. Waits are
    measured only where the meters are published.
    """

    def __init__(self, slot_meters: SlotMeters) -> None:
        slot_meters.enter()
        self._slot = slot_meters
        self._words, self._reals = slot_meters.words, slot_meters.reals
        self._begun = slot_meters.words[BEGUN]
        self._measures_waits = slot_meters.is_published
        self._rows: dict[tuple[str, str], int] = {}
        self._job = ""
        self._base = self._first_cell = 0
        self._run_total = self._wait_total = 0.0
        self._waits = [0] * (len(WAIT_BOUNDS) + 1)
        self._pushed: object = ""
        self._due: float | None = None

    def turn(self, queue: str, job: str) -> None:
        """The next attempts are at jobs of this name from this queue."""
        self.look()
        row = self._rows.get((queue, job))
        if row is None:
            row = self._rows[queue, job] = self._slot.job_row(queue, job)
        self._job = job
        self._base = layout.FIRST_JOB + row * layout.JOB_ROW
        self._first_cell = self._base + layout.FIRST_WAY
        self._words[layout.ROW] = row

    def counts(self, key: int, payload: Payload, began: float, *, again: bool = False) -> None:
        """As ``begins``, by a worker that runs jobs side by side: this attempt is counted next.

        ``again``: it was before, and was put off.
        """
        if again:
            self._begun += 1
            self._words[BEGUN] = self._begun
        else:
            self.begins(payload, began)
        self._words[layout.COUNTED] = key  # only now, as in ``SlotMeters.count``

    def puts_off(self) -> None:
        """Others are counted before the attempt that was to be counted next, if it is not counted yet."""
        if self._slot.is_open:
            self._words[layout.COUNTED] = 0  # first, as in ``SlotMeters.counted_last``
            self._slot.forget()
            self._begun -= 1

    def look(self) -> None:
        """Write what was kept, and the offset between the clocks: the board has begin times in wall-clock time."""
        self._reals[layout.CLOCKS] = time.time() - time.monotonic()
        if self._run_total or self._wait_total or any(self._waits):
            self._reals[self._base + layout.RUN_TOTAL] += self._run_total
            self._reals[self._base + layout.WAIT_TOTAL] += self._wait_total
            for place, count in enumerate(self._waits, start=self._base + layout.FIRST_WAIT):
                if count:
                    self._words[place] += count
            self._run_total = self._wait_total = 0.0
            self._waits = [0] * len(self._waits)

    def begins(self, payload: Payload, now: float) -> None:
        """An attempt begins; ``now`` in Unix seconds by this host's clock."""
        if payload.attempts <= 1 and self._measures_waits:
            pushed = payload.fields.get(PUSHED_AT)
            if pushed != self._pushed or payload.delay is not None:  # otherwise it is from the same bulk
                self._take_times(payload, pushed)
            due = self._due
            if due is not None and 0 <= due <= now:
                wait = now - due
                self._waits[bisect_left(WAIT_BOUNDS, wait)] += 1
                self._wait_total += wait
            elif due is not None and now < due < _NEVER:
                self._waits[0] += 1
        self._begun = begun = self._begun + 1
        self._words[BEGUN] = begun

    def _take_times(self, payload: Payload, pushed: object) -> None:
        self._due = due_at(payload.created_at, payload.delay, pushed)
        # Reused for the next jobs with the same ``pushed`` only if that alone decided it.
        self._pushed = pushed if payload.delay is None and self._due not in (None, payload.created_at) else ""

    def done(self, duration: float) -> None:
        """The job is done; its handler ran for ``duration`` seconds."""
        self._words[self._first_cell + (bisect_left(RUN_BOUNDS, duration) if duration > _QUICK else 0)] += 1
        self._run_total += duration

    def settles(self, verdict: Verdict, is_ours: bool) -> None:
        """The store has taken or refused the verdict on the attempt; the board does not show it yet."""
        if is_ours:
            self._slot.intend(layout.FAILED if isinstance(verdict, Fail) else layout.RELEASED)
        else:
            self.loses()

    def loses(self) -> None:
        """Another worker may have the job; the board does not show yet that this one has nothing to settle."""
        self._slot.intend(layout.GIVEN_BACK + layout.AS_LOST, "lease")

    def gives_back(self) -> None:
        """The job went back to its queue as if the attempt had not begun; the board does not show it yet."""
        self._slot.intend(layout.GIVEN_BACK)

    def settled(self, duration: float) -> None:
        """The board shows that the job is settled."""
        self._slot.end(duration)

    def raised(self, error: BaseException) -> None:
        """The attempt ended by this exception."""
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        self._slot.count_error(self._job, f"{module}{kind.__qualname__}"[:_MOST])

    def abandons(self, since: float) -> None:
        """The store refuses any verdict on the open attempt, if there is one; it began at ``since`` (Unix seconds)."""
        if self._slot.is_open:
            self._slot.intend(layout.GIVEN_BACK + layout.AS_LOST, "lease")
            self._slot.end(self._slot.run_time(since, time.monotonic()))

    def ends_flow(self, state: str) -> None:
        """The worker has ended a flow, which has become this."""
        self._slot.count_flow(state)

    def leaves(self, why: str, grew_most: str = "") -> None:
        """The worker leaves, for one of the reasons for which workers exit (``board/meters.py``).

        ``grew_most`` is the job in whose runs it has grown most.
        """
        self.look()
        if why == "memory" and grew_most:
            self._slot.count_outgrown(next((row for (_, job), row in self._rows.items() if job == grew_most), 0))
        self._slot.leave(why)
