"""Producers push from several threads, before and after a fork, and in bulk."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS

THREADS, EACH = 8, 25


@pytest.fixture
def queue(connection, built):
    shared = Queue(replace(connection, timeout=30.0))  # a busy machine's server takes its time
    yield shared
    shared.close()


def reserved_of(store) -> list[str]:
    return sorted(ids(store.reserve(["default"], OURS, 1_000).leases))


def test_threads_push_through_one_queue_and_nothing_is_lost(queue, store):
    with ThreadPoolExecutor(THREADS) as threads:
        made = threads.map(lambda _: [queue.push("ok") for _ in range(EACH)], range(THREADS))
        pushed = [identity for identities in made for identity in identities]

    assert sorted(pushed) == reserved_of(store)


def test_a_queue_that_was_used_before_a_fork_is_used_on_both_sides_of_it(queue, store, connection, tmp_path):
    script = """
        import os, sys
        from queuepool.jobs.client import Queue
        from queuepool.config.settings import ConnectionSettings

        queue = Queue(ConnectionSettings(url=sys.argv[1], prefix=sys.argv[2], timeout=30.0))
        said = [queue.push("ok")]
        parent = os.fork()
        said += [queue.push("ok") for _ in range(50)]
        with open(sys.argv[3] + str(os.getpid()), "w") as notes:
            notes.write("\\n".join(said[not parent:]))
        if parent:
            assert os.waitpid(parent, 0)[1] == 0
    """
    words = [connection.url, connection.prefix, f"{tmp_path}/pushed"]
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), *words], check=True, timeout=60)
    pushed = [line for file in tmp_path.glob("pushed*") for line in file.read_text().splitlines()]

    assert (101, sorted(pushed)) == (len(pushed), reserved_of(store))


def test_large_payloads_are_pushed_a_few_at_a_time(store):
    names = [f"job-{number}" for number in range(7)]

    store.push("default", new_jobs(*(payload(name, data="x" * 400_000) for name in names)))
    found = [name for _ in names for name in ids(store.reserve(["default"], OURS, 1).leases)]

    assert names == found


def test_nothing_of_a_bulk_is_pushed_when_one_of_it_is_no_job(queue):
    with pytest.raises(Exception, match="no JSON for object"):
        queue.bulk([("ok", 1), ("ok", object())])

    assert 0 == queue.size()


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again(own_server):
    queue = Queue(ConnectionSettings(url=f"unix://{own_server.path}"))
    queue.push("ok")
    own_server.say("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    queue.push("ok")
    assert 2 == queue.size()
    queue.close()


@pytest.mark.thorough("150 of them; test_a_connection_that_the_server_closed_meanwhile_is_opened_again")
def test_a_producer_outlives_any_number_of_failed_pushes(own_server):
    queue = Queue(ConnectionSettings(url=f"unix://{own_server.path}"))
    own_server.kill()
    for _ in range(150):  # redis-py counts connections, up to 100
        with pytest.raises(StoreDown):
            queue.push("ok")
    own_server.start()

    queue.push("ok")
    assert 1 == queue.size()
    queue.close()
