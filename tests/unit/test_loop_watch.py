"""How long a loop has been silent is counted in looks, not by the clock."""

from __future__ import annotations

from collections.abc import Callable

from queuepool.worker.loop_watch import Silence


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
