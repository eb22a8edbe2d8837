"""A pool's steward carries out commands from other hosts, once and in time, and answers each."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from queuepool.board.board import Board, BoardName, State
from queuepool.board.pauses import pool_pause
from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDenied, StoreDown
from queuepool.events import CommandRefused, Event, OperatorActed
from queuepool.payload.signing import Signer
from queuepool.steward.obey import Obey
from queuepool.steward.tell_actions import TellActions
from queuepool.stores.commands import LASTS, CommandOutcome, CommandPost, RemoteCommand
from queuepool.stores.factory import Stores
from queuepool.stores.journal import Journal
from tests.support.each import each
from tests.support.eventually import eventually

BATCH = "0123456789abcdef"
NO_ORDER = "is not a whole number, nor +4, -2, auto, or bounds as 2..16"

#: whoever prints it recurses as deeply: Python 3.11 cannot
DEEP = "[" * 990 + "]" * 990


class Steward:
    """The chores of one pool for operators, without a pool: the test is its master."""

    def __init__(self, stores: Stores, board: Board, remote: str = "safe", post: CommandPost | None = None) -> None:
        self.stores = stores
        self.board = board
        self.pool = PoolSettings(connection=stores.settings, remote=remote)
        self.post = post or stores.commands
        self.events: list[Event] = []
        self.clock = stores.queue.now
        self.journal = stores.journal
        self.start()

    def start(self) -> None:
        """As a new steward does."""
        about = self.pool, "web1", self.board, self.post, self.journal
        self.obey = Obey(*about, lambda: self.clock(), self.news, self)
        self.told = TellActions(self.stores.journal, self.news, self)
        self.obey.run(time.monotonic())
        self.told.run(time.monotonic())

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def news(self) -> str | None:
        return self.stores.control.read(()).news

    def run(self) -> None:
        self.obey.run(time.monotonic())
        self.told.run(time.monotonic())

    def command(self, verb: str = "pause", at: float | None = None, **details: Any) -> RemoteCommand:
        sent_at = self.stores.queue.now() if at is None else at
        return RemoteCommand(self.board.name.instance, verb, details, "jo@web2", sent_at, BATCH)

    def send(self, verb: str = "pause", at: float | None = None, **details: Any) -> RemoteCommand:
        command = self.command(verb, at, **details)
        self.post.send([command])
        return command

    def answers(self) -> list[tuple[CommandOutcome, str]]:
        return [(answer.outcome, answer.words) for answer in self.post.answers(BATCH)]

    @property
    def refusals(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, CommandRefused)]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    found = Board.create(tmp_path / str(BoardName.own()), capacity=10)
    found.header.target = 2
    return found


@pytest.fixture
def steward(stores: Stores, board: Board) -> Steward:
    return Steward(stores, board)


def obeys(steward: Steward) -> None:
    """What a master does."""
    header = steward.board.header
    if header.scale:
        header.target, header.scale = header.scale - 1, 0


def test_a_command_is_answered_when_the_master_has_done_it_and_is_in_the_journal(steward):
    steward.send("scale", order="3", seconds=0)
    steward.run()
    assert [] == steward.answers()
    obeys(steward)
    steward.run()

    assert [(CommandOutcome.DONE, "has 3 workers")] == steward.answers()
    [line] = steward.stores.journal.last(10)
    assert ("jo@web2", "scale 3", "pool default on web1") == (line.by, line.verb, line.subject)


def test_every_pool_on_the_store_tells_its_listeners_what_was_done_once(steward, stores, board):
    stores.journal.write("al@web3", "clear", "queue mail", 7)
    other = Steward(stores, board)
    for _ in range(2):
        steward.run()
        other.run()
    stores.journal.write("al@web3", "pause", "queue mail")
    for _ in range(2):
        steward.run()
        other.run()

    acted = [[(event.verb, event.count) for event in one.events if isinstance(event, OperatorActed)]
             for one in (steward, other)]  # fmt: skip
    assert [[("clear", 7), ("pause", None)], [("pause", None)]] == acted


def lines(steward: Steward) -> list[str]:
    """What the journal has."""
    return [f"{line.verb} {line.subject}" for line in steward.stores.journal.last(10)]


def test_of_a_master_that_does_nothing_it_is_said_that_it_may_do_it_yet(steward):
    steward.send("scale", order="3", seconds=0)
    told = time.monotonic()
    steward.obey.run(told)
    steward.obey.run(told + 4.0)
    assert [] == steward.answers()
    steward.obey.run(told + 6.0)

    [(outcome, words)] = steward.answers()
    assert CommandOutcome.UNKNOWN == outcome
    assert re.fullmatch(r"its master was told \d+ s ago and has not done it: it may do so yet", words)
    line = "scale 3 pool default on web1"
    assert [line, f"{line}: not known whether it was done"] == lines(steward)


def test_a_steward_that_dies_once_it_has_told_the_master_leaves_a_line(steward, board):
    steward.send("scale", order="3", seconds=0)
    steward.run()
    steward.start()  # the next one
    obeys(steward)
    steward.run()

    assert (3, []) == (board.header.target, steward.answers())
    assert ["scale 3 pool default on web1"] == lines(steward)


def test_what_the_journal_cannot_take_is_not_done(steward, board):
    def denied(*_: Any) -> None:
        raise StoreDenied("no permission")

    steward.journal = Journal(steward.stores.values, denied, denied)
    steward.start()
    steward.send("scale", order="3", seconds=0)
    steward.run()

    said = "the journal cannot be written, so nothing was done: no permission"
    assert [(CommandOutcome.REFUSED, said)] == steward.answers()
    assert 0 == board.header.scale


def test_a_command_whose_time_ends_while_its_line_is_written_is_not_carried_out(steward, board, stores):
    """Its operator has been told by then that nobody knows."""
    at = stores.queue.now()

    def slow() -> float:
        read = time.monotonic()  # the steward has read the clock before
        eventually(lambda: time.monotonic() > read + 0.5)
        return stores.queue.now()

    steward.journal = Journal(stores.values, slow, stores.control.announce)
    steward.clock = lambda: at - 1.0
    steward.start()
    steward.clock = lambda: at + LASTS - 0.5
    steward.send("scale", at, order="3", seconds=0)
    steward.run()

    assert [(CommandOutcome.REFUSED, "its time is over")] == steward.answers()
    assert 0 == board.header.scale
    line = "scale 3 pool default on web1"
    assert [line, f"{line}: nothing was done: its time is over"] == lines(steward)


def test_a_pause_says_by_whom_until_it_is_over(steward, board):
    steward.send("pause")
    steward.run()
    board.header.signalled = State.PAUSED
    steward.run()

    assert [(CommandOutcome.DONE, "paused: its workers start no more jobs")] == steward.answers()
    assert "jo@web2" == pool_pause(board).by
    board.header.signalled = State.RUNNING
    assert pool_pause(board) is None


def test_a_stop_is_answered_by_a_steward_that_ends_with_it(steward, board, stores):
    stopping = Steward(stores, board, remote="all")
    stopping.send("stop")
    stopping.run()
    board.header.stop_asked = 1
    stopping.obey.finish()

    assert [(CommandOutcome.DONE, "stopping, its running jobs may finish")] == stopping.answers()


@each(
    ("remote", "verb", "details", "said"),
    [
        ("safe", "stop", {}, "its remote = safe does not allow stop"),
        ("safe", "drain", {}, "its remote = safe does not allow drain"),
        ("safe", "scale", {"order": "0", "seconds": 0}, "its remote = safe does not allow scale"),
        ("safe", "scale", {"order": "99", "seconds": 0}, "it was started with room for 4 workers"),
        ("safe", "scale", {"order": "many", "seconds": 0}, f"it 'many' {NO_ORDER}"),
        ("safe", "scale", {"order": "3", "seconds": "1"}, "it takes whole seconds"),
        ("safe", "scale", {"order": "3", "seconds": 1e300}, "it takes whole seconds"),
        ("safe", "scale", {}, f"it '' {NO_ORDER}"),
        ("safe", "exec", {"command": "x" * 10_000}, "its version knows no exec"),
        ("off", "pause", {}, "its remote = off does not allow pause"),
    ],
)
def test_what_is_not_allowed_or_makes_no_sense_is_refused_and_answered(stores, board, remote, verb, details, said):
    steward = Steward(stores, board, remote)
    steward.send(verb, **details)
    steward.run()

    assert [(CommandOutcome.REFUSED, said)] == steward.answers()
    assert [said] == steward.refusals
    assert 0 == board.header.scale


@each(
    ("verb", "details", "said"),
    [
        ("cancel", {"id": "x"}, "it runs no job with this id"),
        ("stack", {"subject": "x"}, "nothing runs under this id, pid or pool"),
    ],
)
def test_a_pool_that_does_not_run_the_job_says_so_and_nobody_is_warned(stores, board, verb, details, said):
    steward = Steward(stores, board)
    steward.send(verb, **details)
    steward.run()

    assert [(CommandOutcome.NOT_HERE, said)] == steward.answers()
    assert ([], []) == (steward.refusals, lines(steward))


@each(
    ("verb", "details", "said"),
    [
        ("scale", {"order": "DEEP"}, "it takes its order as text"),
        ("scale", {"order": "3", "seconds": "DEEP"}, "it takes whole seconds"),
        ("cancel", {"id": "DEEP"}, "a job's id is a text"),
    ],
)
def test_a_command_that_is_deeply_nested_is_refused_and_answered(stores, board, verb, details, said):
    steward = Steward(stores, board)
    body = json.dumps(asdict(steward.command(verb, **details))).replace('"DEEP"', DEEP)
    stores.values.note(f"commands:{board.name.instance}", json.dumps({"body": body}), 10, 60.0)
    stores.control.announce()
    steward.run()

    assert [(CommandOutcome.REFUSED, said)] == steward.answers()


@each("ago", [LASTS + 1.0, 3600.0, -3600.0])
def test_a_command_of_another_time_is_not_carried_out(stores, board, ago):
    steward = Steward(stores, board)
    steward.send("scale", at=stores.queue.now() - ago, order="3", seconds=0)
    steward.run()

    assert [(CommandOutcome.REFUSED, "its time is over")] == steward.answers()
    assert 0 == board.header.scale


def test_a_command_that_is_put_back_into_the_store_is_not_carried_out_again(steward, board):
    command = steward.send("scale", order="3", seconds=0)
    steward.run()
    obeys(steward)
    steward.run()
    assert [CommandOutcome.DONE] == [outcome for outcome, _ in steward.answers()]

    steward.post.send([command])
    steward.run()
    assert [(CommandOutcome.REFUSED, "it was carried out before")] == steward.answers()
    steward.start()  # which knows nothing of it
    steward.post.send([command])
    steward.run()
    assert [(CommandOutcome.REFUSED, "it was sent before the pool's steward started")] == steward.answers()
    assert 0 == board.header.scale


def test_a_command_for_another_pool_is_not_carried_out(steward, board, stores):
    command = replace(steward.command("scale", order="3", seconds=0), to="0f0f0f0f0f0f")
    [text] = steward.post.send([command])
    stores.values.note(f"commands:{board.name.instance}", text, 10, 60.0)
    steward.run()

    assert [(CommandOutcome.REFUSED, "it is for another pool")] == steward.answers()
    assert 0 == board.header.scale


def test_where_there_are_keys_an_unsigned_command_is_refused_and_a_signed_one_carried_out(stores, board):
    signer = Signer((("k1", "0123456789abcdef"),), required=True)
    steward = Steward(stores, board, post=CommandPost(stores.values, stores.control.announce, signer))
    stores.commands.send([steward.command("scale", order="1", seconds=0)])
    steward.send("scale", order="3", seconds=0)
    steward.run()
    obeys(steward)
    steward.run()

    refusal = "it is not signed as it must be: unsigned"
    assert [refusal] == steward.refusals
    assert 3 == board.header.target
    assert [(CommandOutcome.REFUSED, refusal), (CommandOutcome.DONE, "has 3 workers")] == steward.answers()


def test_of_many_unsigned_commands_one_is_answered(stores, board):
    signer = Signer((("k1", "0123456789abcdef"),), required=True)
    steward = Steward(stores, board, post=CommandPost(stores.values, stores.control.announce, signer))
    stores.values.note(f"commands:{board.name.instance}", "garbage", 100, 60.0)
    stores.commands.send([steward.command("scale", order="3", seconds=0) for _ in range(20)])
    steward.run()

    assert 1 == len(steward.refusals)
    assert [(CommandOutcome.REFUSED, "it is not signed as it must be: unsigned")] == steward.answers()


def test_a_flood_of_what_is_no_command_is_one_line_and_hides_no_command(steward, board, stores):
    for number in range(50):
        stores.values.note(f"commands:{board.name.instance}", f"garbage {number}", 100, 60.0)
    steward.send("scale", order="3", seconds=0)
    steward.run()

    assert [True] == [reason.startswith("no command: ") for reason in steward.refusals]
    assert 4 == board.header.scale


def test_what_a_steward_has_taken_is_not_carried_out_when_the_store_goes_away_then(steward, board):
    """Nobody knows then whether its time is over: it is reported as not answered."""
    steward.send("scale", order="3", seconds=0)

    def away() -> float:
        raise StoreDown("away")

    steward.clock = away
    with pytest.raises(StoreDown):
        steward.run()
    steward.clock = steward.stores.queue.now
    steward.run()

    assert (0, []) == (board.header.scale, steward.answers())
