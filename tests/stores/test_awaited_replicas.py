"""``wait_replicas``: what counts only once replicas have it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import NotReplicated, StoreDown, TagRetired
from queuepool.payload.lease import Lease
from queuepool.stores.factory import Stores
from queuepool.stores.finding import Grade
from queuepool.stores.redis.check_replicas import inspect_replicas
from queuepool.stores.redis.replicas import AWAITED
from queuepool.stores.redis.scripts import script
from tests.support.eventually import eventually
from tests.support.samples import new_jobs, payload
from tests.support.sentinels import Process

#: milliseconds that are too few for a replica that stands still
SHORT = 300

JOBS = new_jobs(payload("a"), payload("b"))


#: a command in a script by which it writes
WRITES = re.compile(r"call\('(set|del|expire|incr\w*|h(set|del|incrby)|s(add|rem)|z(add|rem)|[lr]push|l(rem|trim))'")
#: scripts that move jobs on, and are repeated, and those about what is shown, kept or counted beside jobs
MAY_BE_LOST = {
    "stage", "reclaim", "unpark", "sweep_limits",
    "begin", "count_crash", "count_duration", "count_use", "drop", "drop_entry", "forget", "forget_flow",
    "horizon_jobs", "horizon_show", "keep_history", "limit_holders", "limit_keys", "note", "notes", "place", "publish",
    "put_value", "record", "recorded", "remove_value", "restart", "set_limit", "show", "trim_attempts", "unlock",
}  # fmt: skip


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Process]]:
    """A primary, and a replica that follows it."""
    usual = ['save ""', "repl-diskless-sync-delay 0"]
    first = Process(tmp_path, "redis-server", usual)
    second = Process(tmp_path, "redis-server", [*usual, f"replicaof 127.0.0.1 {first.port}"])
    for one in (first, second):
        one.start()
    eventually(lambda: first.say("WAIT", 1, 100) == 1)
    yield [first, second]
    for one in (second, first):
        one.kill()


def stores_at(server: Process, wanted: str, patience: float = 20.0, *, shared: bool = False, login: str = "") -> Stores:
    """``patience``: seconds; replicas have half of it."""
    url = f"redis://{login}127.0.0.1:{server.port}/0"
    settings = ConnectionSettings(url=url, wait_replicas=wanted, timeout=patience)
    return Stores(settings, shared=shared, reply_timeout=patience)


def hurried(*stores: Stores) -> None:
    """Replicas have less time from now on; the answer of a slow primary has the usual one."""
    for one in stores:
        one.client._replicas._within = SHORT


def begun(server: Process, wanted: str) -> tuple[int, Lease]:
    """Two jobs are there, and one of them is held; the tag and the lease."""
    with closing(stores_at(server, wanted)) as stores:
        tag = stores.queue.join()
        stores.queue.push("default", JOBS)
        (lease,) = stores.queue.reserve(["default"], tag, 1).leases
    return tag, lease


@pytest.mark.parametrize("wanted", ["1", "all"])
def test_each_kind_of_call_waits_and_says_when_it_was_in_vain(servers, wanted):
    first, second = servers
    tag, lease = begun(first, wanted)
    with (
        closing(stores_at(first, wanted)) as stores,
        closing(stores_at(first, wanted, shared=True)) as shared,
    ):
        store = stores.queue
        hurried(stores, shared)
        second.stop()
        calls = [
            lambda: shared.queue.push("default", JOBS),
            lambda: store.renew([lease]),
            lambda: store.reserve_ahead(["default"], tag, 1)(),
            lambda: store.reserve_waiting(["default"], 0.1, tag, 1, [lease]).deleted(),
            store.join,
        ]
        for call in calls:
            with pytest.raises(NotReplicated, match="0 of 1 replicas have it"):
                call()
        assert store.unanswered == 4
        assert store.sizes("default").total == 2 + 2 - 1  # all was done, and reading waits for nobody
        second.go_on()
    with closing(stores_at(first, wanted)) as stores:
        assert stores.queue.join(tag)


def test_what_was_done_before_is_waited_for_by_a_call_that_has_nothing_left_to_do(servers):
    first, second = servers
    _, lease = begun(first, "1")
    with closing(stores_at(first, "1")) as stores:
        hurried(stores)
        second.stop()
        for _ in range(2):
            with pytest.raises(NotReplicated):
                stores.queue.delete([lease])
            stores.close()  # another connection
        second.go_on()
    with closing(stores_at(first, "1")) as stores:
        assert [False] == stores.queue.delete([lease])


def test_the_error_of_a_script_is_told_and_the_next_call_gets_its_own_answer(servers):
    with closing(stores_at(servers[0], "1")) as stores:
        store, tag = stores.queue, stores.queue.join()
        store.retire(tag)
        with pytest.raises(TagRetired):
            store.reserve(["default"], tag, 1)
        store.client.command("SCRIPT", "FLUSH")
        assert store.push("default", JOBS)
        assert store.sizes("default").ready == 2


def test_all_misses_a_replica_that_has_left_until_another_server_is_the_primary(servers):
    first, second = servers
    with closing(stores_at(first, "all")) as stores:
        stores.queue.push("default", JOBS)
        hurried(stores)
        second.kill()
        eventually(lambda: first.say("INFO", "replication")["connected_slaves"] == 0)
        for _ in range(2):
            with pytest.raises(NotReplicated):
                stores.queue.push("default", JOBS)


@contextmanager
def copying(server: Process) -> Iterator[None]:
    """Whoever has got a copy and confirms nothing: a replica that loads it, or a backup."""
    with socket.create_connection(("127.0.0.1", server.port)) as other:
        for words in (b"REPLCONF listening-port 1", b"REPLCONF capa eof capa psync2", b"PSYNC ? -1"):
            other.sendall(words + b"\r\n")
            other.recv(100)  # no copy is begun for one that has yet to take an answer
        eventually(lambda: "online" in str(server.say("INFO", "replication").get("slave1")))
        yield


def test_all_counts_nobody_who_only_copies(servers):
    with copying(servers[0]), closing(stores_at(servers[0], "all")) as stores:
        stores.queue.push("default", JOBS)
        assert "1 of 1 have all that is pushed" in next(inspect_replicas(stores))[1]


def test_a_pool_without_it_sends_no_wait(servers):
    servers[0].say("CONFIG", "RESETSTAT")
    with closing(stores_at(servers[0], "")) as stores:
        stores.queue.push("default", JOBS)
        stores.queue.reserve(["default"], stores.queue.join(), 2)

    assert "cmdstat_wait" not in servers[0].say("INFO", "commandstats")


def test_a_user_who_may_not_wait_is_told_that_it_was_done(servers):
    first, _ = servers
    first.say("ACL", "SETUSER", "app", "on", "nopass", "~*", "&*", "+@all", "-wait")
    settings = ConnectionSettings(url=f"redis://app:x@127.0.0.1:{first.port}/0", wait_replicas="1")
    with closing(Stores(settings)) as stores:
        with pytest.raises(StoreDown, match=r"it was done, but the server refuses to wait.*wait"):
            stores.queue.push("default", JOBS)
        assert stores.queue.sizes("default").ready == 2


def test_check_says_what_answers_and_what_that_protects_from(servers):
    first, _ = servers

    def said(wanted: str, login: str = "") -> list[tuple[Grade, str]]:
        with closing(stores_at(first, wanted, login=login)) as stores:
            return list(inspect_replicas(stores))

    assert [] == said("")
    first.say("ACL", "SETUSER", "app", "on", "nopass", "~*", "&*", "+@all", "-info")
    (fine, words), (warn, more) = said("all")
    assert (fine, warn) == (Grade.OK, Grade.WARN)
    assert "1 of 1 have all that is pushed" in words
    assert "if one of these 1 is lost" in more
    ((grade, words),) = said("2")
    assert grade is Grade.FAIL
    assert "2 must answer, and 1 do" in words
    assert ["1 of unknown have", "unknown, as the user may not run INFO"] == [
        known[0]
        for _, words in said("1", "app:x@")
        if (known := re.findall("1 of unknown have|unknown, as.*INFO", words))
    ]


def test_each_script_that_writes_waits_or_is_known_to_be_done_again_or_to_be_about_no_job():
    folder = files("queuepool.stores.redis") / "lua"
    names = {file.name.removesuffix(".lua") for file in folder.iterdir() if file.name.endswith(".lua")}

    assert AWAITED | MAY_BE_LOST == {name for name in names if WRITES.search(script(name)[0])}
    assert not AWAITED & MAY_BE_LOST
