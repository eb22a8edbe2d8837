"""One pool takes all bad payloads of the corpus from one queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.jobs.registry import arguments_of
from queuepool.payload.envelope import decode
from queuepool.stores.records import FailedJob
from tests.faults.corpus.app import digest
from tests.faults.corpus.cases import cases
from tests.faults.corpus.payloads import CATALOGUE, OK, F, Q
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.redis_server import PREFIX
from tests.support.samples import payload

READY = f"{PREFIX}queues:default"
#: a key that is no list, and rows of the delayed set that are no jobs, or never due
WRONG = f"{PREFIX}queues:wrong"
SCORES = ("-inf", "-1e300", "0", "1")
NEVER_DUE = ("+inf", "1e300")
#: of the log: two fields of 8 KiB, and room for the rest
LONGEST_LINE = 20_000


@dataclass(frozen=True)
class Aftermath:
    """What a pool made of it all."""

    quarantined: dict[bytes, str]
    failed: list[FailedJob]
    ran: list[dict[str, Any]]
    left: list[bytes]
    wrong: str
    log: str

    def runs(self, identity: str) -> list[dict[str, Any]]:
        return [line for line in self.ran if line["id"] == identity]

    @cached_property
    def failed_by_payload(self) -> list[tuple[dict[str, Any], FailedJob]]:
        """Each record, and its payload read: some are large."""
        return [(begun(one.payload), one) for one in self.failed]


def marked(raw: bytes, name: str) -> bytes:
    """With an id of the case's own, where it has the usual one: records of failed jobs go by it."""
    case = name.replace(" ", "-").encode()
    return raw.replace(b'"id":"a"', b'"id":"%b"' % case).replace(b'"uuid":"a"', b'"uuid":"%b"' % case)


def begun(raw: str | bytes) -> dict[str, Any]:
    """A payload as it is after its first reservation."""
    return {**json.loads(raw), "attempts": 1}


def good(number: int) -> bytes:
    return payload(f"good-{number}", data={"number": number})


@pytest.fixture(scope="module")
def store(redis_socket: str) -> Iterator[redis.Redis]:
    with redis.Redis(unix_socket_path=redis_socket) as client:
        client.flushall()
        yield client


@pytest.fixture(scope="module")
def aftermath(store: redis.Redis, redis_socket: str, tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """One pool, which found every bad payload in its list, a good one after each."""
    # On a busy machine the server may be longer at a script with 16 MiB than a producer waits for it.
    connection = ConnectionSettings(url=f"unix://{redis_socket}", prefix=PREFIX, timeout=60.0)
    site = Site(connection, tmp_path_factory.mktemp("pool"), Queue(connection))
    store.set(WRONG, "no list")
    for score in SCORES:
        store.execute_command("ZADD", f"{READY}:delayed", score, f"due at {score}")
    for score in NEVER_DUE:
        store.execute_command("ZADD", f"{READY}:delayed", score, payload(score))
    for number, (name, row) in enumerate(CATALOGUE.items()):
        for raw in (marked(row.raw, name), good(number)):
            site.queue.push_raw(raw)
    flags = ["--modules", "tests.faults.corpus.app", "--workers", "2", "--tries", "0", "--queue", "wrong,default"]
    flags += ["--unknown-retry", "0"]
    with site.pool(*flags, wait=False) as pool:
        eventually(lambda: len(NEVER_DUE) == site.queue.size(), within=120)
    stores = site.queue.stores
    found = Aftermath(
        quarantined={entry.payload: entry.reason for entry in stores.records.quarantined("default")},
        failed=stores.failed.page(),
        ran=site.trail(),
        left=store.zrange(f"{READY}:delayed", 0, -1),
        wrong=store.type(WRONG).decode(),
        log=pool.log(),
    )
    site.queue.close()
    store.flushall()
    return found


@each("name", cases(CATALOGUE))
def test_bad_input(aftermath: Aftermath, name: str) -> None:
    row = CATALOGUE[name]
    raw = marked(row.raw, name)
    match row:
        case Q():
            assert aftermath.quarantined[raw].isprintable()
        case F(error=error, words=words):
            first = begun(raw)
            [record] = [one for given, one in aftermath.failed_by_payload if given == first]
            assert record.exception.startswith(error.__name__)
            assert words in record.exception
            assert 1 == record.attempts
            assert 128 >= len(record.id)
        case OK(attempts=attempts):
            job = decode(marked(row.receipt, name))
            [run] = aftermath.runs(job.id)
            assert (attempts, digest(*arguments_of(job.data))) == (run["attempts"], run["digest"])


def test_between_all_that_is_bad_every_good_job_ran_once(aftermath: Aftermath) -> None:
    assert [1] * len(CATALOGUE) == [len(aftermath.runs(f"good-{number}")) for number in range(len(CATALOGUE))]
    assert [] == [line for line in aftermath.ran if line["event"] != "ran"]


@pytest.mark.fault("F67")
@pytest.mark.bad_input("B044")
def test_no_name_in_a_payload_was_imported(aftermath: Aftermath) -> None:
    assert [] == [line for line in aftermath.ran if line["imported"]]


@pytest.mark.bad_input("B059")
def test_what_is_too_large_is_not_copied_through_the_log(aftermath: Aftermath) -> None:
    assert 2 == list(aftermath.quarantined.values()).count("too-large")
    assert LONGEST_LINE > max(map(len, aftermath.log.splitlines()))


@pytest.mark.bad_input("B062")
def test_delayed_rows_that_are_no_jobs_are_set_aside_when_they_are_due(aftermath: Aftermath) -> None:
    assert {"json"} == {aftermath.quarantined[f"due at {score}".encode()] for score in SCORES}
    assert {payload(score) for score in NEVER_DUE} == set(aftermath.left)


@pytest.mark.bad_input("B063")
def test_a_queue_that_is_no_list_is_reported_once_by_each_worker_and_left_as_it_is(aftermath: Aftermath) -> None:
    told = [line for line in aftermath.log.splitlines() if "WRONGTYPE" in line]

    assert 3 >= len(told) >= 1
    assert all("queue=wrong" in line for line in told)
    assert "string" == aftermath.wrong
