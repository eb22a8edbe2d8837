"""Servers that are no store for us are refused: cluster nodes, Sentinels, poolers without transactions."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreUnfit
from queuepool.stores.factory import Stores
from tests.support.commands import queuepool
from tests.support.eventually import eventually
from tests.support.pgbouncer import pooler
from tests.support.redis_server import answers, free_port, redis_binary, start_redis
from tests.support.samples import new_jobs

CLUSTER = "this is a node of a Redis Cluster: write redis+cluster:// and a prefix with a hash tag, such as {app}:"
SENTINEL = "this is a Sentinel, which holds no jobs: write redis+sentinel://HOST:26379,HOST,HOST/NAME/0"
STATEMENTS = "the pooler has pool_mode statement, which allows no transactions: set transaction or session"
SLOTS = "CLUSTER", "ADDSLOTSRANGE", 0, 16383


@contextmanager
def node(*options: str) -> Iterator[str]:
    """A cluster's node, which has no slots yet; gives its socket."""
    with tempfile.TemporaryDirectory(prefix="queuepool-redis-") as folder:
        server = start_redis(folder, "--cluster-enabled", "yes", "--cluster-port", str(free_port()), *options)
        try:
            yield f"{folder}/redis.sock"
        finally:
            server.kill()
            server.wait()


@contextmanager
def one_with_all_slots() -> Iterator[str]:
    """A node that is the whole cluster."""
    with node() as path:
        say(path, *SLOTS)
        eventually(lambda: is_whole(path))
        yield path


@contextmanager
def one_of_two() -> Iterator[str]:
    """A node that has none of the slots, knows who has them, and says so (MOVED)."""
    # The port of the nodes' own talk would be 10,000 above the other, and too large.
    ports = [(free_port(), free_port()) for _ in range(2)]
    with ExitStack() as stack:
        first, other = (
            stack.enter_context(node("--port", str(port), "--cluster-port", str(bus))) for port, bus in ports
        )
        say(other, *SLOTS)
        say(first, "CLUSTER", "MEET", "127.0.0.1", *ports[1])
        eventually(lambda: is_whole(first))
        yield first


@contextmanager
def sentinel() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="queuepool-redis-") as folder:
        path, file = f"{folder}/redis.sock", Path(folder, "sentinel.conf")
        file.write_text(f"port 0\nunixsocket {path}\ndir {folder}\n")
        command = ["redis-sentinel", str(file), "--sentinel"]
        server = subprocess.Popen(command, executable=redis_binary(), stdout=subprocess.DEVNULL)
        try:
            eventually(lambda: answers(path))
            yield path
        finally:
            server.kill()
            server.wait()


def say(path: str, *words: object) -> object:
    with redis.Redis(unix_socket_path=path) as client:
        return client.execute_command(*words)


def is_whole(path: str) -> bool:
    with redis.Redis(unix_socket_path=path) as client:
        return bool("ok" == client.execute_command("CLUSTER INFO")["cluster_state"])


SERVERS = {
    "a cluster without slots": (node, CLUSTER),
    "a cluster of one node": (one_with_all_slots, CLUSTER),
    "a cluster's wrong node": (one_of_two, CLUSTER),
    "a Sentinel": (sentinel, SENTINEL),
}


@pytest.fixture(params=SERVERS, scope="module")
def server(request) -> Iterator[tuple[str, str]]:
    """The URL of one, and what is to be said of it."""
    start, words = SERVERS[request.param]
    with start() as path:
        yield f"unix://{path}", words


@pytest.mark.fault("F57")
@pytest.mark.by_turns("verb")
@pytest.mark.parametrize("verb", ["start", "work"])
def test_a_server_that_is_no_store_for_us_is_refused_at_the_start_in_a_line(server, verb, tmp_path):
    url, words = server
    place = ["--runtime-dir", str(tmp_path)] if verb == "start" else []
    done = queuepool(verb, "--url", url, *place, timeout=60)

    assert (78, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert (words if words == CLUSTER else "is it a Sentinel, or a proxy?") in done.stderr


@pytest.mark.by_turns("words", "database")
@pytest.mark.parametrize("words", [["push", "do"], ["size"]])
@pytest.mark.parametrize("database", ["", "?db=1"])
def test_who_asks_such_a_server_is_told_in_a_line(server, words, database):
    url, said = server
    done = queuepool(*words, "--url", url + database)

    assert (78, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert (said if said == CLUSTER else "is it a Sentinel, or a proxy?") in done.stderr


def test_a_check_says_what_it_is_and_nothing_else_of_it(server):
    url, words = server
    done = queuepool("check", "--url", url)
    ours = [line for line in done.stdout.splitlines() if "connection default" in line]

    assert 1 == done.returncode
    assert f"FAIL connection default: {words}" == ours[-1]
    assert {"ok  "} == {line[:4] for line in ours[:-1]}


@pytest.mark.by_turns("start")
@pytest.mark.parametrize("start", [one_with_all_slots, one_of_two])
def test_whatever_is_asked_of_a_clusters_node_is_told_as_that(start):
    """As where a server is replaced by one: what runs waits, is told why, and goes on when it is mended."""
    queues = ["default", "other"]
    with start() as path:
        stores = Stores(ConnectionSettings(url=f"unix://{path}"))
        for verb in (
            lambda: stores.queue.push("default", new_jobs(b"{}")),
            lambda: stores.queue.reserve(queues, 1, 1),
            lambda: stores.queue.stage(queues),
            lambda: stores.queue.wait(queues, 0.01),
            lambda: stores.control.read(queues),
        ):
            with pytest.raises(StoreUnfit, match="node of a Redis Cluster"):
                verb()
        stores.close()


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("redis-cluster", "names a cluster: write redis+cluster://HOST:PORT,HOST/"),
        ("clusters", "names a cluster: write redis+cluster://HOST:PORT,HOST/"),
        ("redis-sentinel", "names a sentinel: write redis+sentinel://HOST:26379,HOST,HOST/NAME/0"),
    ],
)
def test_urls_of_clusters_and_sentinels_are_named(scheme, words):
    done = queuepool("check", env={"QUEUEPOOL_CONNECTION_URL": f"{scheme}://h:26379/mymaster/0"})

    assert 78 == done.returncode
    assert words in done.stdout


@pytest.mark.by_turns("words")
@pytest.mark.parametrize("words", [["start"], ["work"], ["push", "do"], ["size"], ["check"]])
def test_a_pooler_without_transactions_is_refused_in_a_line(postgres, postgres_url, tmp_path, words):
    place = ["--runtime-dir", str(tmp_path)] if words == ["start"] else []
    with pooler(postgres, "statement") as bouncer:
        done = queuepool(*words, "--url", bouncer.before(postgres_url), *place, timeout=60)

    told = [line for line in (done.stderr + done.stdout).splitlines() if STATEMENTS in line]
    assert (1 if words == ["check"] else 78, 1) == (done.returncode, len(told))
    assert words == ["check"] or 1 == len(done.stderr.splitlines())
