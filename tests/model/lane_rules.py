"""What a worker with lanes and its steward go by, as pure functions: the models call them; the code is to be the same.

Who answers for a death, and what becomes of its job, are such functions too, and the program's own:
``steward/culprits.py``, ``settlement/verdict.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Write(NamedTuple):
    """One store of eight bytes on the board, or the last one of a lane's facts.

    ``what``: hold (the facts of a lane, at last its stage), stage, turn (whose attempt is about to be counted), begin
    and end (the counts of attempts), forget (a begin that was none), answered (no reserve is without a reply). And one
    that only reads: look (whether the steward wants back what the reserve has brought).
    """

    what: str
    lane: int = -1
    stage: str = ""
    job: tuple[int, ...] = ()


class Told(NamedTuple):
    """What may be sent under a worker's tag, with a client for what it waits for and another for the rest.

    ``is_reserving``: a reserve was sent, and its reply is not on the board and was not given up.
    """

    is_reserving: bool
    #: a give back was sent and not answered
    is_giving_back: bool
    #: by each client, when the tag was drawn, and now
    unanswered_then: Sequence[int]
    unanswered_now: Sequence[int]

    @property
    def is_spent(self) -> bool:
        """Whether a request under the tag may still be on its way, whoever sent it."""
        return tuple(self.unanswered_then) != tuple(self.unanswered_now)

    @property
    def may_reserve(self) -> bool:
        """One reserve at a time; and none while a give back may yet meet the same bytes under the same tag."""
        return not (self.is_reserving or self.is_giving_back or self.is_spent)

    @property
    def may_give_back(self) -> bool:
        """No reserve may be on its way: it could bring the same job again, with the same bytes and the same tag.

        Then a repeated give back would take it away, or a search would spare it for the sake of the lane that had it.
        """
        return not (self.is_reserving or self.is_spent)

    @property
    def may_renew(self) -> bool:
        """What a reply brings is not known before it is on the board: a search would give it back."""
        return self.is_spent and not self.is_reserving


def of_a_reply(taken: Sequence[tuple[int, tuple[int, ...]]], settled: Sequence[int]) -> list[Write]:
    """What a reserve's reply changes: what is settled is free, then the new lanes, and only then is it answered.

    Before anything begins it looks for the steward's mark: written first, so that one of both sees the other.
    """
    free = [Write("stage", lane, "free") for lane in settled]
    new = [Write("hold", lane, "reserved", job) for lane, job in taken]
    return [*free, *new, Write("answered"), Write("look")]


def of_a_begin(lane: int) -> list[Write]:
    return [Write("turn", lane), Write("begin"), Write("stage", lane, "running")]


def of_a_done_job(lane: int) -> list[Write]:
    """Its lease is still to be deleted."""
    return [Write("turn", lane), Write("stage", lane, "done"), Write("end")]


def of_a_settled_job(lane: int) -> list[Write]:
    """After another verdict than done was carried out: by a worker, which then frees the lane, or by a steward."""
    return [Write("turn", lane), Write("stage", lane, "settled"), Write("end")]


def of_a_dead_workers_counts(is_one_too_many: bool, turn: int, stage: str) -> list[Write]:
    """What it had half counted, before anything else is counted.

    ``is_one_too_many``: it has begun one attempt more than it has ended and still runs; ``stage``: of the lane whose
    turn it was.
    """
    if not is_one_too_many:
        return []
    return [Write("forget" if stage == "reserved" else "end", turn)]
