"""What a service manager is notified of: laws beside a model of systemd, and what it takes to reach it."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from queuepool.board.board import Board, Role, State
from queuepool.config.settings import PoolSettings
from queuepool.master.service_manager import PASS, Herald, NotifySocket, Signs, SignsOfPool, is_being_replaced
from tests.support.effort import effort
from tests.support.service_manager import ServiceManager, service_manager

WATCHDOG = 2.0


def taken(address: str, **more: str) -> tuple[NotifySocket, dict[str, str]]:
    """The socket that these variables name, and what is left of them."""
    environ = {"NOTIFY_SOCKET": address, "PATH": "/bin", **more}
    return NotifySocket.taken_from(environ), environ


# Laws


class Systemd(RuleBasedStateMachine):
    """A service that does anything, pass by pass, with a manager that now and then reads nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.manager: ServiceManager = self.stack.enter_context(service_manager(Path(folder) / "notify"))
        self.herald = Herald(taken(self.manager.address, WATCHDOG_USEC=str(int(WATCHDOG * 1e6)))[0])
        self.now, self.last_ping, self.until = 100.0, 100.0 - PASS, 0.0
        self.signs = Signs("starting", is_ready=False)
        self.live_since: float | None = 100.0
        self.seen = 0

    def teardown(self) -> None:
        self.stack.close()

    @rule(seconds=st.floats(0.001, PASS))
    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.herald.notify(self.signs, self.now)
        if not self.signs.is_live:
            self.live_since = None
        elif self.live_since is None:
            self.live_since = self.now

    @rule(words=st.text(max_size=20))
    def shows(self, words: str) -> None:
        self.signs = self.signs._replace(words=words)

    @rule(until=st.floats(-10.0, 100.0))
    def has_until(self, until: float) -> None:
        self.until = self.now + until
        self.signs = self.signs._replace(until=self.until)

    @rule()
    def comes_to_work(self) -> None:
        self.signs = self.signs._replace(is_ready=True)

    @rule(whether=st.booleans())
    def reloads(self, whether: bool) -> None:
        self.signs = self.signs._replace(is_reloading=whether)

    @rule(whether=st.booleans())
    def lives(self, whether: bool) -> None:
        self.signs = self.signs._replace(is_live=whether)

    @rule()
    def stops(self) -> None:
        self.signs = self.signs._replace(is_stopping=True)

    @invariant()
    def every_message_is_as_systemd_wants_it(self) -> None:
        for message in self.manager.read()[self.seen :]:
            phases = [line for line in message.lines if line in ("READY=1", "RELOADING=1", "STOPPING=1")]
            assert len(phases) <= 1
            assert ("RELOADING=1" in message.lines) == (message.value("MONOTONIC_USEC") is not None)
            assert message.value("MONOTONIC_USEC") in (None, str(int(self.now * 1e6)))
            self.extends_only_before_the_deadline(message.value("EXTEND_TIMEOUT_USEC"))
            if "WATCHDOG=1" in message.lines:
                assert self.signs.is_live
                self.last_ping = self.now
        self.seen = len(self.manager.messages)

    def extends_only_before_the_deadline(self, usec: str | None) -> None:
        if usec is not None:
            assert self.signs.is_stopping or not self.signs.is_ready
            assert 0 <= int(usec) / 1e6 <= self.until - self.now

    @invariant()
    def phases_follow_each_other(self) -> None:
        phases = self.manager.phases()
        work = phases[:-1] if "STOPPING" in phases else phases

        assert "STOPPING" not in work
        assert ["READY", "RELOADING"] * (len(work) // 2) + ["READY"] * (len(work) % 2) == work

    @invariant()
    def pings_come_twice_as_often_as_they_must(self) -> None:
        if self.live_since is not None:
            assert self.now - max(self.last_ping, self.live_since) <= WATCHDOG / 2


Systemd.TestCase.settings = effort(60, steps=40)
TestSystemd = Systemd.TestCase


def test_words_change_at_most_once_a_second(tmp_path):
    with service_manager(tmp_path / "notify") as manager:
        herald = Herald(taken(manager.address)[0])
        for step in range(100):
            herald.notify(Signs(f"running done={step}", is_ready=True), 50.0 + step * 0.1)

        assert 10 == len(manager.having("STATUS=.*"))
        assert 1 == len(manager.having("READY=1"))


def test_words_are_one_line(tmp_path):
    with service_manager(tmp_path / "notify") as manager:
        Herald(taken(manager.address)[0]).notify(Signs("a\nWATCHDOG=1\x1b\0b\ud800", is_ready=False), 1.0)
        [message] = manager.read()

    assert ("STATUS=a WATCHDOG=1  b ",) == message.lines


def test_words_are_cut_before_the_manager_drops_the_whole_message(tmp_path):
    with service_manager(tmp_path / "notify") as manager:
        Herald(taken(manager.address)[0]).notify(Signs("\N{GRINNING FACE}" * 5000, is_ready=True), 1.0)
        [message] = manager.read()

    assert "READY=1" in message.lines
    assert len("\n".join(message.lines).encode()) < 4096


@pytest.mark.fault("F89")
def test_what_a_full_or_missing_socket_did_not_get_is_sent_again(tmp_path, caplog):
    with service_manager(tmp_path / "notify", WATCHDOG) as manager:
        notify_socket, _ = taken(manager.address)
        while notify_socket.send(["STATUS=nobody reads"]):
            pass
        herald = Herald(notify_socket)
        herald.notify(Signs("running", is_ready=True), 1.0)
        assert [] == caplog.records  # it is busy, which is no problem of ours
        (tmp_path / "notify").rename(tmp_path / "gone")
        for step in range(5):
            herald.notify(Signs("running", is_ready=True), 2.0 + step)
        (tmp_path / "gone").rename(tmp_path / "notify")
        manager.read()
        herald.notify(Signs("running", is_ready=True), 9.0)

        assert ("READY=1", "STATUS=running") == manager.read()[-1].lines
        assert ["READY"] == manager.phases()
    assert 1 == len(caplog.records)


def test_a_time_that_no_job_can_have_is_asked_for_as_a_number(tmp_path):
    with service_manager(tmp_path / "notify") as manager:
        Herald(taken(manager.address)[0]).notify(Signs("draining", is_ready=True, is_stopping=True, until=1e308), 1.0)
        [message] = manager.read()

    assert 0 < int(message.value("EXTEND_TIMEOUT_USEC") or 0) < 2**63


# Variables


def test_an_abstract_address_is_reached():
    with service_manager(f"@queuepool-{os.getpid()}") as manager:
        assert taken(manager.address)[0].send(["READY=1"])
        assert ["READY"] == manager.phases()


def test_the_variables_are_taken_away_and_the_others_stay(tmp_path):
    for address in (str(tmp_path / "notify"), "nonsense", ""):
        _, left = taken(address, WATCHDOG_USEC="abc", WATCHDOG_PID="1")

        assert {"PATH": "/bin"} == left


def test_without_a_manager_nothing_is_sent():
    assert not taken("")[0]
    assert not Herald(NotifySocket())


@pytest.mark.bad_input("B166")
@pytest.mark.parametrize("address", ["relative", "@", "/", "vsock:2:1234", "/" + "x" * 107, "@" + "x" * 200])
def test_an_address_that_cannot_be_one_is_ignored_with_a_warning(address, caplog):
    notify_socket, _ = taken(address)
    for _ in range(3):
        notify_socket.send(["READY=1"]) if notify_socket else None

    assert ["WARNING"] == [record.levelname for record in caplog.records]
    assert "NOTIFY_SOCKET" in caplog.text or "cannot be notified" in caplog.text


@pytest.mark.bad_input("B166")
@pytest.mark.parametrize("what", ["file", "FIFO", "stream", "directory", "nothing"])
def test_what_is_no_socket_for_datagrams_costs_one_warning(tmp_path, caplog, what):
    path = tmp_path / "notify"
    make = {"file": path.touch, "FIFO": lambda: os.mkfifo(path), "directory": path.mkdir}
    make.get(what, lambda: None)()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        if what == "stream":
            stream.bind(str(path))
            stream.listen()
        notify_socket, _ = taken(str(path))

        assert [False] * 3 == [notify_socket.send(["READY=1"]) for _ in range(3)]
    assert [logging.WARNING] == [record.levelno for record in caplog.records]


@pytest.mark.bad_input("B166")
@pytest.mark.parametrize("usec", ["abc", "0", "-5", "1", "999999", "1e9", "٣", "9" * 30, "15s"])
def test_a_watchdog_that_cannot_be_kept_is_off_with_a_warning(usec, caplog):
    notify_socket, _ = taken("/run/notify", WATCHDOG_USEC=usec)

    assert (True, 0.0) == (bool(notify_socket), notify_socket.watchdog)
    assert [logging.WARNING] == [record.levelno for record in caplog.records]


@pytest.mark.parametrize(("pid", "seconds"), [("ours", 15.0), ("", 15.0), ("1", 0.0), ("me", 0.0)])
def test_a_watchdog_that_is_another_process_is_not_ours(pid, seconds, caplog):
    pid = str(os.getpid()) if pid == "ours" else pid
    notify_socket, _ = taken("/run/notify", WATCHDOG_USEC="15000000", WATCHDOG_PID=pid)

    assert (seconds, []) == (notify_socket.watchdog, caplog.records)


# A pool


@pytest.fixture
def board(tmp_path: Path) -> Board:
    board = Board.create(tmp_path / "board.1-2", capacity=8)
    board.header.generation, board.header.target = 1, 2
    for index, slot in enumerate(board.slots[:2], 1):
        slot.begin(Role.WORKER, index, 1)
        slot.pid, slot.state = 100 + index, State.IDLE
    return board


def test_a_start_may_take_as_long_as_its_imports_may(board):
    signs = SignsOfPool(PoolSettings(boot_timeout=60.0), board).now()
    unlimited = SignsOfPool(PoolSettings(boot_timeout=0.0), board).now()

    assert (False, 0.0) == (signs.is_ready, unlimited.until)
    assert signs.until > 0.0


def test_a_stop_may_take_as_long_as_the_running_jobs_may(board):
    board.header.ready, board.header.state = 1.0, State.DRAINING
    first, second = board.slots[:2]
    assert 0.0 == SignsOfPool(PoolSettings(), board).now().until  # none runs
    first.state, first.deadline, second.state = State.BUSY, 1000.0, State.BUSY

    assert 1000.0 + 1.0 + 5.0 == SignsOfPool(PoolSettings(grace=1.0), board).now().until  # the other one has no limit
    first.state = State.IDLE
    assert 0.0 == SignsOfPool(PoolSettings(), board).now().until


def test_a_stop_takes_no_longer_than_stop_timeout(board):
    board.header.ready, board.header.state = 1.0, State.DRAINING
    board.slots[0].state, board.slots[0].deadline = State.BUSY, 1e15
    signs = SignsOfPool(PoolSettings(stop_timeout=30.0), board)
    first = signs.now().until

    assert first < 1e14
    assert first == signs.now().until  # it began once


def test_a_pool_is_reloading_until_each_worker_has_a_successor_and_no_old_one_is_idle(board):
    old, other = board.slots[:2]
    new, last = board.slots[2:4]
    assert not is_being_replaced(1, 2, [old, other])
    old.state = other.state = State.BUSY
    assert is_being_replaced(2, 2, [old, other])
    new.number, new.generation, new.state = 1, 2, State.IDLE
    last.number, last.generation = 2, 2
    assert is_being_replaced(2, 2, [old, other, new, last])  # the last one boots
    last.state = State.IDLE
    assert not is_being_replaced(2, 2, [old, other, new, last])  # the old ones leave after their jobs
    old.state = State.IDLE
    assert is_being_replaced(2, 2, [old, other, new, last])
    assert not is_being_replaced(2, 2, [new])  # one that died is replaced, without a reload


@pytest.mark.bad_input("B168")
@pytest.mark.parametrize("beside", ["alerts", "pauses"])
def test_whatever_a_job_has_put_beside_the_board_a_master_goes_on(board, beside):
    board.header.state, board.header.paused = State.RUNNING, "mail"
    board.path.with_name(f"{board.path.name}.pauses").write_text(f'{{"mail": [{"9" * 400}, ""]}}')
    if beside == "alerts":
        board.header.paused = ""
        board.path.with_name(f"{board.path.name}.alerts").mkdir()

    assert SignsOfPool(PoolSettings(), board).now().words.startswith("running workers=2 busy=0 done=0 failed=0")


def test_the_trouble_is_that_of_the_state_beside_it(board):
    board.header.ready, board.header.state = 1.0, State.RUNNING
    signs = SignsOfPool(PoolSettings(), board)
    assert "" == signs.now().trouble
    board.header.state = State.DRAINING
    signs.now()
    board.header.state, board.header.store_full = State.RUNNING, time.time()

    assert signs.now().trouble.startswith("the store has been full since")
    assert f"running workers=2 busy=0 done=0 failed=0; {signs.now().trouble}" == signs.now().words


def test_code_that_does_not_come_to_work_ends_a_reload_in_words(board):
    board.header.ready, board.header.state, board.header.generation = 1.0, State.RUNNING, 2
    assert SignsOfPool(PoolSettings(), board).now().is_reloading
    board.header.note_failed_boot(2, "no module named 'nope'")
    signs = SignsOfPool(PoolSettings(), board).now()

    assert not signs.is_reloading
    assert "running workers=2 busy=0 done=0 failed=0; the new code does not become ready: no module named 'nope'" == (
        signs.words
    )
