"""The figures of the comparison with other queues are what the report says they are."""

from __future__ import annotations

import math
import socket
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.peers import chart, front, report
from tests.bench.peers.aims import reached
from tests.bench.peers.asides import Asides, Load
from tests.bench.peers.jobs import RECORD
from tests.bench.peers.load import push_on_time
from tests.bench.peers.plan import DEATHS, DRAINS, LATENCIES, PUSHES
from tests.bench.peers.stage import Stage, stage
from tests.bench.peers.trail import Note, Trail, rate_of


class Other:
    """A queue as the report sees it."""

    settings, keeps, pushes = "as it comes", False, True
    strengths = {"push": "It is smaller."}

    def __init__(self, name: str) -> None:
        self.name = name


PEERS = [Other("queuepool"), Other("Ant"), Other("Snail")]


@pytest.fixture(scope="module")
def world():
    with stage() as server:
        yield server


def test_a_rate_is_that_of_the_middle_however_slowly_the_workers_start_and_end():
    late = [Note(0, 0.0, 1), *(Note(n, 100 + n / 50, 1) for n in range(1, 99)), Note(99, 900.0, 1)]

    assert 50 == pytest.approx(rate_of(late))


def test_jobs_that_ran_twice_do_not_stand_for_those_that_did_not_run(tmp_path: Path):
    trail = Trail(tmp_path / "trail")
    trail.path.write_bytes(b"".join(RECORD.pack(n, 1.0, 7) for n in (0, 1, 1)))

    assert not trail.has_all(3)
    assert 3 == len(trail)

    with trail.path.open("ab") as file:
        file.write(RECORD.pack(2, 1.0, 7))

    assert trail.has_all(3)


def test_a_start_that_is_being_noted_is_not_read_yet(tmp_path: Path):
    trail = Trail(tmp_path / "trail")
    trail.path.write_bytes(RECORD.pack(0, 1.0, 7) + RECORD.pack(1, 2.0, 7)[:10])

    assert [Note(0, 1.0, 7)] == trail.notes()


def test_a_far_server_answers_so_much_later_however_many_answers_are_on_their_way(world: Stage):
    with world.way(0.2) as way, socket.create_connection(("127.0.0.1", way.port)) as line:
        began = time.monotonic()
        for n in range(100):
            line.sendall(b"PING\r\n")
            if n == 0:
                first = line.recv(7)
                once = time.monotonic() - began
        rest = b""
        while len(rest) < 99 * 7:
            rest += line.recv(1000)
        both = time.monotonic() - began

    assert b"+PONG\r\n" == first
    assert 0.2 <= once
    assert once + 0.2 <= both < once + 99 * 0.2


def test_the_report_says_where_another_queue_is_ahead_and_why():
    drain, push = DRAINS[0].title, PUSHES[0].title
    results = {
        drain: {"queuepool": [200.0, 100.0], "Ant": [100.0, 50.0], "Snail": [2.0, 2.0]},
        push: {"queuepool": [100.0], "Ant": [150.0], "Snail": [104.0]},
    }
    text = report.written(results, PEERS, ["a machine"], Asides(doubles=Counter(Snail=3)))
    ahead = text.partition("## Where another queue is ahead")[2].partition("##")[0]

    assert f"- **Ant**: {push} 150 beside 100 jobs/s. It is smaller." == ahead.strip()
    assert "| Ant | 2.0 |" in text
    assert "| Snail | 75.0 |" in text
    assert "| queuepool | 150 (100 to 200) |" in text
    assert text.endswith("More than once: Snail 3.\n")


def test_a_job_that_does_not_come_back_is_said_so_and_not_averaged():
    results = {DEATHS[0].title: {"queuepool": [0.02], "Ant": [math.inf, 3.0], "Snail": [3.0]}}

    assert "| Ant | > 6 |" in report.written(results, PEERS, [], Asides())


def test_the_longest_bar_is_the_best_queues():
    picture = chart.drawn({"drained": {"queuepool": 200.0, "Ant": 50.0}})

    assert 'class="ours" x="170" y="42" width="400.0"' in picture
    assert 'class="bar" x="170" y="64" width="100.0"' in picture


def test_the_report_says_of_each_aim_what_was_measured_and_whether_it_is_enough():
    near, idle = DRAINS[1].title, LATENCIES[0].title
    results = {
        near: {"queuepool": [500.0, 520.0], "Huey": [100.0, 100.0], "Laravel": [100.0, 100.0]},
        idle: {"queuepool": [0.8, 0.9, 0.9, 9.0]},
    }

    assert [("5.1 ×", True), ("5.1 ×", False), ("0.90 ms", True)] == [aim[1:] for aim in reached(results)]
    assert "2 of 3 are met." in report.written(results, [Other("queuepool")], [], Asides())


def test_the_report_says_what_was_not_done_in_full():
    asides = Asides(loads={"Ant": Load(50.0, limited=True), "Snail": Load(2.0, limited=False)}, fewer={"Snail": 60})

    text = " ".join([*report.loads_said(asides), *report.said(asides)])

    assert "At half load they had, in jobs a second: Ant 50.0, Snail 2.0." in text
    assert "as its producer could not push more: Ant." in text
    assert "reckoned up: Snail 60." in text


def test_at_half_load_a_push_that_is_late_does_not_move_the_next_ones_time():
    pushed: list[tuple[float, list[int]]] = []

    class Slow(Other):
        def bulk(self, job: str, numbers: range) -> None:
            pushed.append((time.monotonic() - began, list(numbers)))
            until_past(began + 0.2)

    began = time.monotonic()
    push_on_time(Slow("Slow"), 30, began, 0.01)

    assert list(range(30)) == [n for _, numbers in pushed for n in numbers]
    assert set(range(21)) <= {n for _, numbers in pushed[:2] for n in numbers}  # what fell due during the first
    assert all(at >= numbers[-1] * 0.01 for at, numbers in pushed)


def until_past(moment: float) -> None:
    while time.monotonic() < moment:
        pass


def test_the_front_page_of_the_documentation_has_the_bars_of_the_report():
    assert front.front() == (front.DOCS / "front.svg").read_text(), "run scripts/docs"
    assert 'class="ours"' in front.front()
