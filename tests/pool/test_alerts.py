"""Alerts of a pool: raised and cleared, shown on the board, and told to the operator once for all pools on a store."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from queuepool.alerts.sending import Outbox
from queuepool.alerts.watch import AlertFacts, Alerts, AlertWatch
from queuepool.board import open_alerts, pauses
from queuepool.board.blame import Blame
from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.counts import JobCounts, PoolCounts, QueueFacts
from queuepool.board.open_alerts import MAX_ALERTS, OpenAlert
from queuepool.board.pauses import Pauses
from queuepool.board.status import overview
from queuepool.config.alerts import AlertSettings
from queuepool.config.settings import PoolSettings
from queuepool.events import AlertCleared, AlertRaised, Event
from queuepool.events.listeners import LISTENERS
from queuepool.stores.factory import Stores
from tests.support.drivers import connection_of, opened
from tests.support.eventually import eventually
from tests.support.lines import whole_lines
from tests.support.processes import halt
from tests.support.redis_server import Server
from tests.support.samples import new_jobs, payload

pytestmark = pytest.mark.every_store("make")

ATTEMPTS = {("mail", "a"): JobCounts(done=20)}
#: seconds: longer than from what a test publishes to its next look on a busy machine
LOST = 3.0


@dataclass
class Pool:
    """A watch over a real board and a real store, with counters that the test sets."""

    name: str
    board: Board
    stores: Stores
    limits: AlertSettings
    folder: Path
    counts: PoolCounts = PoolCounts()  # noqa: RUF009 - it is constant
    events: list[Event] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.measure()
        self.start()

    def start(self) -> None:
        """As a new steward does."""
        self.outbox = Outbox(self.limits, self.name, f"{self.name}.alerts", self)
        facts = AlertFacts(self.name, self.board, lambda _: self.counts, open_alerts.read(self.board))
        about = self.name, self.limits, self.board, self.stores, facts, self.outbox, self
        self.watch = AlertWatch(*about, queues=["mail"])

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def measure(self, **more: Any) -> None:
        """One queue with these facts."""
        self.counts = self.counts._replace(queues={"mail": QueueFacts(measured_at=time.time(), **more)})

    def look(self, times: int = 2) -> None:
        self.decide(times)
        self.deliver()

    def decide(self, times: int = 2) -> None:
        for _ in range(times):
            self.now += 10.0
            self.watch.run(self.now)

    def deliver(self) -> None:
        """One program after the other."""
        eventually(lambda: self.outbox.step() is None, within=120)

    def told(self) -> list[tuple[str, str, str]]:
        """The events, in short."""
        words = {AlertRaised: "raised", AlertCleared: "cleared"}
        return [(words[type(one)], one.kind, one.subject) for one in self.events]  # type: ignore[attr-defined,index]

    def notices(self) -> list[dict[str, Any]]:
        """What all pools' programs got."""
        return [json.loads(line) for line in whole_lines(self.folder / "notices")]

    def sent(self) -> list[tuple[str, str, str]]:
        """By which pool which notices were sent."""
        return [(one["pool"], one["state"], one["kind"]) for one in self.notices()]


Make = Callable[..., Pool]


def limits_of(folder: Path, **more: Any) -> AlertSettings:
    """With a program that keeps what it gets."""
    program = folder / "page"
    program.write_text(f"#!/bin/sh\nnotice=$(cat)\nprintf '%s\\n' \"$notice\" >> {folder}/notices\n")
    program.chmod(0o755)
    return AlertSettings(program=(str(program),), **more)


@pytest.fixture(params=["redis", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Pools on one store."""
    with opened(connection_of(request.param, request)) as stores:
        yield lambda name="default", **more: pool_at(stores, tmp_path, name, **more)


def pool_at(stores: Stores, folder: Path, name: str = "default", **more: Any) -> Pool:
    board = Board.create(folder / f"board.{name}-1", 4)
    board.header.state = State.RUNNING
    return Pool(name, board, stores, limits_of(folder, **more), folder)


def begin_wait(pool: Pool) -> None:
    pool.measure(oldest=75.0)


def begin_overdue(pool: Pool) -> None:
    pool.measure(overdue=31.0)


def begin_quarantine(pool: Pool) -> None:
    pool.measure(quarantined=1)


def begin_failed(pool: Pool) -> None:
    pool.measure()
    pool.counts = pool.counts._replace(failed_jobs=1000)


def begin_failures(pool: Pool) -> None:
    pool.look(1)
    pool.counts = pool.counts._replace(jobs={("mail", "a"): JobCounts(done=15, failed=5)})


def begin_crashes(pool: Pool) -> None:
    pool.look(1)
    pool.counts = pool.counts._replace(exits={"crash": 4, "killed": 1})


def busy_slot(pool: Pool) -> Slot:
    slot = pool.board.slots[0]
    slot.role, slot.state, slot.job, slot.since = Role.WORKER, State.BUSY, "app.slow", time.time() - 4000
    pool.board.header.used = 1
    return slot


def begin_running(pool: Pool) -> None:
    busy_slot(pool)


def begin_store(pool: Pool) -> None:
    pool.board.header.store_lost = time.time() - 75


def begin_store_full(pool: Pool) -> None:
    pool.board.header.store_full = time.time() - 75


def begin_boot(pool: Pool) -> None:
    pool.board.header.target = 1
    pool.board.header.note_failed_boot(1, "cannot import app")


def begin_paused(pool: Pool) -> None:
    pool.board.header.paused = "mail"


def end_all(pool: Pool) -> None:
    pool.measure()
    pool.counts = pool.counts._replace(jobs={}, exits={}, failed_jobs=0)
    pool.board.slots[0].state = State.IDLE
    pool.board.header.store_lost = pool.board.header.store_full = 0.0
    pool.board.header.target, pool.board.header.paused = 0, ""


KINDS = {
    "wait": (begin_wait, "mail"),
    "overdue": (begin_overdue, "mail"),
    "quarantine": (begin_quarantine, "mail"),
    "failed": (begin_failed, "failed jobs"),
    "failures": (begin_failures, "mail"),
    "crashes": (begin_crashes, "default"),
    "running": (begin_running, "app.slow"),
    "store": (begin_store, "store"),
    "store_full": (begin_store_full, "store"),
    "boot": (begin_boot, "default"),
    "paused": (begin_paused, "pause of queue mail"),
}
#: limits that are reached at once: how long they last is counted from the first look
AT_ONCE = {"boot": 1e-9, "paused": 1e-9}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_raised_once_and_cleared_once(make: Make, kind: str) -> None:
    pool, (begin, subject) = make(**AT_ONCE), KINDS[kind]
    pool.look()
    begin(pool)
    pool.look(4)

    assert [("raised", kind, subject)] == pool.told()
    assert [(kind, subject)] == [(one.kind, one.subject) for one in open_alerts.read(pool.board)]

    end_all(pool)
    pool.look(4)

    assert [("raised", kind, subject), ("cleared", kind, subject)] == pool.told()
    assert () == open_alerts.read(pool.board)
    assert [("default", "raised", kind), ("default", "cleared", kind)] == pool.sent()


def test_a_pool_that_publishes_nothing_is_lost_and_found(make: Make) -> None:
    pool, other = make(), {"host": "web2", "pool": "p"}
    own = {"host": pool.watch._own.name.partition(":")[0], "pool": "default"}
    pool.limits = replace(pool.limits, lost=LOST)
    pool.start()
    pool.stores.control.publish("web2:p:1", other)
    eventually(lambda: pool.stores.control.publish("own", own) or pool.look(1) or pool.told())

    assert [("raised", "lost", "web2:p")] == pool.told()

    pool.stores.control.publish("web2:p:2", other)  # restarted
    pool.stores.control.publish("own", own)
    pool.look(1)

    assert ("cleared", "lost", "web2:p") == pool.told()[-1]


def test_the_alert_of_a_lost_pool_names_what_it_ran(make: Make) -> None:
    pool = make()
    pool.limits = replace(pool.limits, lost=LOST)
    pool.start()
    own = {"host": pool.watch._own.name.partition(":")[0], "pool": "default"}
    jobs = [{"role": "worker", "job": {"name": "shop.charge", "id": f"id-{number}"}} for number in range(5)]
    processes = [{"role": "steward"}, *jobs]
    pool.stores.control.publish("web2:p:1", {"host": "web2", "pool": "p", "processes": processes})
    pool.stores.control.publish("web3:p:1", {"host": "web3", "pool": "p", "processes": [7]})
    eventually(lambda: pool.stores.control.publish("own", own) or pool.look(1) or len(pool.told()) == 2)
    details = {event.subject: event.detail for event in pool.events}  # type: ignore[attr-defined]

    named = "it ran shop.charge id-0, shop.charge id-1, shop.charge id-2 and 2 more"
    assert {"web2:p": named, "web3:p": ""} == details
    assert f"(limit {LOST:g} s); {named}" in pool.notices()[0]["text"]
    assert named == open_alerts.read(pool.board)[0].detail


def test_a_queue_that_no_pool_serves_and_nobody_takes_from_is_told(make: Make, monkeypatch: Any) -> None:
    monkeypatch.setattr("queuepool.alerts.watch._SHARE", 0.0)  # however long a look takes, the next comes by this clock
    pool = make(lost=0)
    for queue in ("mail", "theirs", "campaing", "paused"):
        pool.stores.queue.push(queue, new_jobs(payload("a"), payload("b")))
    pool.stores.control.publish("web2:p:1", {"host": "web2", "pool": "p", "queues": ["theirs"]})
    pool.stores.control.pause("paused")
    pool.look(25)
    assert [] == pool.told()
    pool.look(10)

    assert [("raised", "unserved", "campaing")] == pool.told()
    assert "queue campaing: no pool serves it" in pool.notices()[0]["text"]

    pool.stores.queue.clear("campaing")
    pool.look(10)
    assert ("cleared", "unserved", "campaing") == pool.told()[-1]


@pytest.mark.thorough("70 queues; the test before it has one")
def test_all_queues_are_looked_at_however_many_nobody_serves(make: Make) -> None:
    pool = make(lost=0)
    for number in range(70):
        pool.stores.queue.push(f"campaing-{number:03}", new_jobs(payload("a")))
    pool.stores.control.pause("campaing-000")
    pool.look(100)

    assert {f"campaing-{number:03}" for number in range(1, 70)} == {subject for _, _, subject in pool.told()}


def test_a_queue_that_workers_of_laravel_serve_is_not_told(make: Make) -> None:
    """They cannot be seen, but they take its next job, however long it is."""
    pool = make(lost=0)
    pool.stores.queue.push("php", new_jobs(*(payload(str(number)) for number in range(20))))
    tag = pool.stores.queue.join()
    for _ in range(16):
        pool.look(5)
        pool.stores.queue.delete(pool.stores.queue.reserve(["php"], tag, 1).leases)

    assert [] == pool.told()


def test_where_a_pool_does_not_say_its_queues_none_is_called_unserved(make: Make) -> None:
    pool = make(lost=0)
    pool.stores.queue.push("campaing", new_jobs(payload("a")))
    pool.stores.control.publish("web2:p:1", {"host": "web2", "pool": "p"})
    eventually(lambda: pool.look(5) or pool.now > 600.0)

    assert [] == pool.told()


def test_a_pool_that_has_ended_as_it_should_is_not_lost(make: Make) -> None:
    pool = make(lost=0.001)
    pool.stores.control.publish("web2:p:1", {"host": "web2", "pool": "p"})
    pool.stores.control.withdraw("web2:p:1")
    pool.look(3)

    assert [] == pool.told()


def test_a_notice_says_what_is_wrong(make: Make) -> None:
    pool = make()
    begin_wait(pool)
    pool.look()

    [notice] = pool.notices()
    expected = {"state": "raised", "kind": "wait", "subject": "mail", "value": 75.0, "limit": 60.0, "pool": "default"}
    assert expected.items() <= notice.items()
    assert "queue mail: the next job has been ready for 75 s (limit 60 s)" == notice["text"]
    assert abs(time.time() - time.mktime(time.strptime(notice["since"], "%Y-%m-%dT%H:%M:%SZ")) + time.timezone) < 60


def test_two_pools_on_one_store_send_one_notice(make: Make) -> None:
    one, two = make("one"), make("two")
    for pool in (one, two):
        begin_wait(pool)
        pool.look(8)

    assert [("one", "raised", "wait")] == one.sent()
    assert [("raised", "wait", "mail")] == one.told() == two.told()

    for pool in (two, one):
        end_all(pool)
        pool.look(3)
    assert [("one", "raised", "wait"), ("one", "cleared", "wait")] == one.sent()


def test_a_notice_is_sent_again_while_the_alert_is_raised(make: Make) -> None:
    one, two = make("one", repeat=1.0), make("two", repeat=1.0)

    def look() -> None:
        for pool in (one, two):
            begin_wait(pool)
            pool.look()

    eventually(lambda: look() or len(one.sent()) >= 3)
    assert {"raised"} == {state for _, state, _ in one.sent()}


@pytest.mark.fault("F82")
@pytest.mark.parametrize("begin", [begin_boot, begin_paused])
def test_a_new_steward_goes_on_with_what_the_one_before_has_seen_lasting(make: Make, begin) -> None:
    pool = make(**AT_ONCE)
    begin(pool)
    pool.look(4)
    assert 1 == len(pool.told())
    pool.limits = replace(pool.limits, boot=30.0, paused=30.0)  # of which it has seen nothing itself
    raised = [one._replace(since=time.time() - 1.0, limit=30.0, value=31.0) for one in open_alerts.read(pool.board)]
    open_alerts.write(pool.board, raised)
    pool.start()
    pool.look(4)

    assert ["raised"] == [state for state, _, _ in pool.told()]


def test_many_forgotten_pauses_are_one_alert(make: Make) -> None:
    pool = make()
    names = [f"tenant-{number:02}" for number in range(90)]
    pool.board.header.paused = ",".join(names)
    Pauses(pool.board).note(names, {name: (time.time() - 2 * 86400, "") for name in names}, time.time())
    pool.look(4)

    assert [("raised", "paused", "pause of many queues")] == pool.told()


def test_a_pause_that_somebody_has_forgotten_counts_from_when_it_was_made(make: Make) -> None:
    pool = make()
    begin_paused(pool)
    pool.look(4)
    assert [] == pool.told()
    Pauses(pool.board).note(["mail"], {"mail": (time.time() - 2 * 86400, "ada@web1")}, time.time())
    pool.look(4)

    assert [("raised", "paused", "pause of queue mail")] == pool.told()


@pytest.mark.fault("F82")
def test_a_new_steward_goes_on_with_the_alerts_of_the_one_before(make: Make) -> None:
    pool = make()
    begin_wait(pool)
    pool.look()
    pool.start()
    pool.look(3)

    assert [("raised", "wait", "mail")] == pool.told()

    end_all(pool)
    pool.look()
    assert ("cleared", "wait", "mail") == pool.told()[-1]
    assert ["raised", "cleared"] == [state for _, state, _ in pool.sent()]


@pytest.mark.fault("F82")
def test_a_restarted_pool_sends_no_second_notice_and_says_when_it_is_over(make: Make) -> None:
    pool = make()
    begin_wait(pool)
    pool.look()
    pool.board.unlink()
    again = make()
    begin_wait(again)
    again.look(4)

    assert [("default", "raised", "wait")] == again.sent()

    end_all(again)
    again.look()
    assert [("default", "raised", "wait"), ("default", "cleared", "wait")] == again.sent()


@pytest.mark.fault("F83")
def test_while_the_store_is_away_nothing_of_it_is_cleared_and_every_pool_sends_its_own_notices(make: Make) -> None:
    one, two = make("one"), make("two")
    begin_wait(one)
    one.look()
    for pool in (one, two):
        begin_store(pool)
        pool.measure()
        pool.look(3)

    assert [("raised", "wait", "mail"), ("raised", "store", "store")] == one.told()
    assert [("one", "raised", "wait"), ("one", "raised", "store"), ("two", "raised", "store")] == one.sent()

    for pool in (one, two):
        end_all(pool)
        pool.look()
    assert sorted([("one", "cleared", "wait"), ("one", "cleared", "store"), ("two", "cleared", "store")]) == sorted(
        one.sent()[3:]
    )


@pytest.fixture
def near(own_server: Server, connection) -> Iterator[Callable[[], Stores]]:
    """Makes stores, each with connections of its own, on a server that may go away."""
    with ExitStack() as open_ones:
        settings = replace(connection, url=f"unix://{own_server.path}")
        yield lambda: open_ones.enter_context(closing(Stores(settings)))


@pytest.mark.fault("F83")
def test_a_connection_that_has_ended_since_the_last_look_is_no_absence_of_the_store(
    own_server: Server, near: Callable[[], Stores], tmp_path: Path
) -> None:
    pools = [pool_at(near(), tmp_path, name, lost=0, unserved=0) for name in ("one", "two")]
    for pool in pools:
        pool.stores.values.claim_alert("another", pool.name, 60.0)
    own_server.kill()
    own_server.start()
    for pool in pools:
        begin_wait(pool)
        pool.look()

    assert [("one", "raised", "wait")] == pools[0].sent()


@pytest.mark.fault("F83")
def test_a_notice_sent_without_the_store_is_not_sent_again_once_the_store_is_back(
    own_server: Server, near: Callable[[], Stores], tmp_path: Path
) -> None:
    one, two = (pool_at(near(), tmp_path, name, lost=0, unserved=0) for name in ("one", "two"))
    own_server.kill()
    for pool in (one, two):
        begin_wait(pool)
        pool.look()
    sent = [("one", "raised", "wait"), ("two", "raised", "wait")]
    assert sent == one.sent()
    own_server.start()
    for pool in (one, two):
        pool.look()
    one.board.unlink()
    again = pool_at(near(), tmp_path, "one", lost=0, unserved=0)  # its next master knows of no alert
    begin_wait(again)
    again.look(3)
    assert sent == one.sent()

    for pool in (two, again):
        end_all(pool)
        pool.look()
    assert [*sent, ("one", "cleared", "wait")] == one.sent()


@pytest.mark.fault("F83")
def test_a_store_that_says_nothing_delays_no_notice_for_long(own_server: Server, connection, tmp_path: Path) -> None:
    # As the watch of a pool has it: of its 30 s, the waits of a worker's own connection would take 28.
    silent = replace(connection, url=f"unix://{own_server.path}", block_for=0.0)
    with closing(Stores(silent)) as stores:
        pool = pool_at(stores, tmp_path)
        halt(own_server.process.pid)
        pool.counts = PoolCounts(
            queues={f"q{number}": QueueFacts(oldest=75.0, measured_at=time.time()) for number in range(9)}
        )
        began = time.monotonic()
        pool.decide()
        took = time.monotonic() - began
        pool.deliver()

    assert 9 == len(pool.sent())
    assert took < 30


@pytest.mark.bad_input("B154")
def test_without_the_table_of_locks_every_pool_sends_its_own_notices_and_says_so_once(
    request, tmp_path, caplog
) -> None:
    logging.getLogger("queuepool").propagate = True
    with opened(connection_of("sqlite", request)) as stores:
        stores.client.ask(lambda connection: connection.exec_driver_sql("drop table cache_locks"))
        for name in ("one", "two"):
            pool = pool_at(stores, tmp_path, name)
            begin_wait(pool)
            pool.look()
        end_all(pool)
        pool.look()

    assert [("one", "raised", "wait"), ("two", "raised", "wait"), ("two", "cleared", "wait")] == pool.sent()
    refused = [one.message for one in caplog.records if "cache_locks" in one.message]
    assert 2 == len(refused)
    assert "pools cannot agree on who sends a notice, so each sends its own: the file " in refused[0]
    assert " has no table cache_locks" in refused[0]


def test_without_exec_and_webhook_the_store_is_not_asked(make: Make) -> None:
    pool = make()
    pool.limits = AlertSettings(lost=0)
    pool.start()
    begin_wait(pool)
    pool.look()

    assert [("raised", "wait", "mail")] == pool.told()
    assert "TAKEN" == pool.stores.values.claim_alert("wait:mail", "other", 60.0).name


def test_status_shows_the_alerts(make: Make) -> None:
    pool = make()
    begin_wait(pool)
    pool.look()

    [alert] = overview("default", pool.board).alerts
    assert ("wait", "mail", 75.0, 60.0) == (alert.kind, alert.subject, alert.value, alert.limit)
    assert "queue mail: the next job has been ready for 75 s (limit 60 s)" == alert.text


def test_a_pool_that_counts_nothing_says_what_it_does_not_watch(connection, tmp_path: Path, caplog) -> None:
    logging.getLogger("queuepool").propagate = True
    board, pool = Board.create(tmp_path / "board.1-1", 4), PoolSettings(connection=connection, metrics=False)
    Alerts(pool, AlertSettings(), board, "cookie", LISTENERS, Blame(board.header))
    assert [
        "alerts: metrics = no, so only running jobs, pauses, boots, lost pools and the stores are watched"
    ] == caplog.messages

    caplog.clear()
    Alerts(replace(pool, metrics=True), AlertSettings(), board, "cookie", LISTENERS, Blame(board.header))
    assert [] == caplog.messages


# The file beside the board


@pytest.mark.bad_input("B153")
@pytest.mark.parametrize(
    "text",
    [
        b"", b"[", b"{}", b"3", b"[3]", b"[[]]", b'[["a","b",null,1,1]]', b'[["a","b","x",1,1]]', b"\xff" * 99,
        b"[" * 30_000, b'[["a","b",1,1,1e300]]', b'[["a","b",' + b"9" * 400 + b",1,1]]", b'{"mail":[1e300,""]}',
        b'{"mail":[' + b"9" * 400 + b',""]}', b'{"mail":7}',
    ],
)  # fmt: skip
def test_a_file_that_a_job_has_overwritten_holds_no_alerts(tmp_path: Path, text: bytes) -> None:
    board = Board.create(tmp_path / "board.1-1", 1)
    board.header.paused = "mail"
    for kind in ("alerts", "pauses"):
        (tmp_path / f"board.1-1.{kind}").write_bytes(text)

    assert () == open_alerts.read(board)
    assert {} == pauses.read(board)
    assert (["mail"], []) == ((found := overview("p", board)).paused, found.pauses)


def test_the_file_is_bounded_and_goes_with_the_board(tmp_path: Path) -> None:
    board = Board.create(tmp_path / "board.1-1", 1)
    alerts = [OpenAlert("wait", "q" * 196 + str(1000 + number), 1e9, 60.0, 1e9, True) for number in range(MAX_ALERTS)]
    open_alerts.write(board, alerts)

    assert tuple(alerts) == open_alerts.read(board)
    assert 50_000 > (tmp_path / "board.1-1.alerts").stat().st_size
    board.unlink()
    assert [] == list(tmp_path.iterdir())
