"""How long a loop has been silent, or in one step, is counted in looks, not by the clock."""

from __future__ import annotations

from collections.abc import Callable

from queuepool.board.board import Board
from queuepool.board.lane_layout import ON_CPU, ON_CPU_SINCE
from queuepool.events.listeners import Listeners
from queuepool.worker.loop_watch import LoopWatch, Silence


def test_a_loop_is_silent_from_the_first_question_that_it_does_not_answer():
    asked: list[Callable[[], object]] = []
    silence = Silence(asked.append)

    assert [0.0, 0.25, 0.75] == [silence.look(now) for now in (10.0, 10.25, 10.75)]
    assert 1 == len(asked)
    asked.pop()()
    assert [0.0, 0.5] == [silence.look(now) for now in (11.0, 11.5)]
    assert 1 == len(asked)


def test_time_in_which_nobody_looked_is_not_the_loops():
    silence = Silence(list[object]().append)

    assert [0.0, 1.0, 1.25] == [silence.look(now) for now in (10.0, 500.0, 500.25)]


def test_what_the_watch_sees_of_a_step_is_time_in_which_no_thread_had_the_interpreters_lock(tmp_path):
    lanes = Board.create(tmp_path / "board.1-1", capacity=1, lanes=2).mapped().slots[0].lanes
    assert lanes
    watch = LoopWatch(lanes, Listeners(), Silence(list[object]().append), list[object]().clear)

    def seen(since: float, *looks: float) -> list[float]:
        lanes.reals[ON_CPU_SINCE], lanes.wholes[ON_CPU] = since, lanes.common + 1
        return [(watch.look(now, 60.0, is_needed=False), lanes.watched)[1] for now in looks]

    assert [0.0, 0.25, 0.5, 1.0] == seen(10.0, 10.125, 10.375, 10.625, 10.9375 + 9.0)
    assert [0.0, 0.25] == seen(20.0, 20.25, 20.5)
    lanes.reals[ON_CPU_SINCE] = 21.0
    assert 0.0 == lanes.watched
