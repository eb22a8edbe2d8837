"""What a reader copies of the lanes of a worker, column by column."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from math import isfinite

from queuepool.board.held_jobs import Stage
from queuepool.board.lane_layout import (
    CANCEL_AT,
    CANCEL_GRACE,
    CANCEL_OBEYED,
    HELD,
    LEASE_END,
    ORDER,
    ORDERS,
    RENEWED_END,
    RENEWED_TURN,
    STAGE,
    TURN,
)  # fmt: skip
from queuepool.board.orders import LaneOrder, due


class LaneColumns:
    """The columns as they were at one moment; each number is as it was, but two may be of different moments."""

    def __init__(self, raw: bytes, count: int) -> None:
        self._wholes, self._reals = array("q", raw), array("d", raw)
        self._count = count

    def whole(self, column: int, lane: int) -> int:
        return self._wholes[column * self._count + lane]

    def seconds(self, column: int, lane: int) -> float:
        value = self._reals[column * self._count + lane]
        return value if isfinite(value) else 0.0

    def turn(self, lane: int) -> int:
        return self.whole(TURN, lane)

    def stage(self, lane: int) -> int:
        return self.whole(STAGE, lane)

    def held(self) -> Iterator[int]:
        """The lanes that hold a job."""
        return (lane for lane in range(self._count) if self.stage(lane) in HELD)

    def column(self, column: int) -> array[int]:
        return self._wholes[column * self._count : (column + 1) * self._count]

    def times(self, column: int) -> array[float]:
        return self._reals[column * self._count : (column + 1) * self._count]

    def lease_end(self, lane: int) -> float:
        """When its lease ends, as last renewed; 0.0 if its end matters to no process."""
        end = self.seconds(LEASE_END, lane)
        is_renewed = self.whole(RENEWED_TURN, lane) == self.turn(lane)
        return self.seconds(RENEWED_END, lane) or end if end and is_renewed else end

    def runs(self, lane: int) -> bool:
        """Whether its job is at work: not done, and not being settled."""
        return self.stage(lane) == Stage.RUNNING and self.seconds(LEASE_END, lane) != 0.0

    def kill_at(self, lane: int) -> float:
        return due(*(self.seconds(column, lane) for column in (CANCEL_AT, CANCEL_GRACE, CANCEL_OBEYED)))

    def order(self, lane: int) -> LaneOrder | None:
        turn, order = divmod(self.whole(ORDER, lane), ORDERS)
        return LaneOrder(order) if turn == self.turn(lane) and order in list(LaneOrder) else None
