"""Alive, started, ready: from plain facts."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from queuepool.board.board import Board, State
from queuepool.metrics.samples import DEAD_AFTER, facts_of, not_live, not_ready, not_started
from tests.support.each import each
from tests.support.full_counts import FACTS
from tests.support.probing import probe
from tests.unit.test_probe import board as board  # a fixture


def test_a_pool_that_works_is_all_three():
    assert ["", "", ""] == [problem_of(FACTS) for problem_of in (not_live, not_started, not_ready)]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (replace(FACTS, beat_age=15.0), "the master's loop last came round 15 s ago"),
        (replace(FACTS, beat_age=float("inf")), "the master's loop has never come round"),
    ],
)
def test_only_the_masters_loop_makes_it_live(facts, reason):
    assert reason == not_live(facts) == not_ready(facts)


def test_a_pool_lives_whatever_its_store_and_its_workers_do():
    assert "" == not_live(replace(FACTS, store_lost_at=1.0, workers={}, hindrance="it fails", ready_at=0.0))


def test_it_has_started_once_the_modules_are_imported():
    assert "no worker has imported the modules yet" == not_started(replace(FACTS, ready_at=0.0))


@each(
    ("facts", "reason"),
    [
        (replace(FACTS, hindrance="it is being stopped"), "it is being stopped"),
        (replace(FACTS, ready_at=0.0), "no worker has imported the modules yet"),
        (replace(FACTS, store_lost_at=FACTS.read_at - 59.0), ""),
    ],
)
def test_it_is_ready_while_it_takes_jobs(facts, reason):
    assert reason == not_ready(facts)


@pytest.mark.parametrize(
    "change",
    [
        lambda board: None,
        lambda board: setattr(board.header, "beat", 0.0),
        lambda board: setattr(board.header, "beat", time.monotonic() - DEAD_AFTER - 1.0),
        lambda board: setattr(board.header, "beat", time.monotonic() + 1000.0),
        lambda board: setattr(board.header, "ready", 0.0),
        lambda board: setattr(board.header, "state", State.PAUSED),
        lambda board: setattr(board.header, "state", 999),
        lambda board: setattr(board.header, "target", 0),
        lambda board: setattr(board.header, "store_lost", time.time() - 30.0),
        lambda board: setattr(board.header, "store_lost", time.time() - 90.0),
        lambda board: setattr(board.slots[2], "state", State.STARTING),
        lambda board: setattr(board.slots[2], "dead", 1),
    ],
)
def test_it_says_what_the_probe_says(board: Board, change):
    change(board)
    facts = facts_of("default", "default", board)
    said = [not_live(facts) == "", not_started(facts) == "", not_ready(facts) == ""]
    folder = board.path.parent.parent

    assert said == [probe(question, folder).returncode == 0 for question in ("live", "started", "ready")]
