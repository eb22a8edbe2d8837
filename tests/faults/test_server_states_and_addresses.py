"""The pool treats every unfit state of a Redis server as an outage, and follows its name to a new address."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from queuepool.jobs.client import Queue
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.redis_server import Server, free_port, start_redis

QUICK = "[connection]\nblock_for = 1\n"


def between(begin: tuple[object, ...], *end: object) -> Callable[[Server], AbstractContextManager[None]]:
    @contextmanager
    def state(server: Server) -> Iterator[None]:
        server.say(*begin)
        yield
        server.say(*end)

    return state


@contextmanager
def cut_off_and_stale(server: Server) -> Iterator[None]:
    server.say("CONFIG", "SET", "replica-serve-stale-data", "no")
    server.say("REPLICAOF", "127.0.0.1", free_port())
    yield
    server.say("REPLICAOF", "NO", "ONE")


@contextmanager
def unable_to_save(server: Server) -> Iterator[None]:
    Path(server.folder, "dump.rdb").mkdir()
    server.say("CONFIG", "SET", "save", "3600 1000000")
    server.say("BGSAVE")
    yield
    server.say("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")


@contextmanager
def busy(server: Server) -> Iterator[None]:
    """With somebody else's script that does not end."""
    server.say("CONFIG", "SET", "busy-reply-threshold", 10)
    with socket.socket(socket.AF_UNIX) as careless:
        careless.connect(server.path)
        careless.sendall(b"EVAL 'while true do end' 0\r\n")
        yield
        server.say("SCRIPT", "KILL")


@contextmanager
def crowded(server: Server) -> Iterator[None]:
    with redis.Redis(unix_socket_path=server.path, single_connection_client=True) as guest:
        guest.config_set("maxclients", 1)
        for kind in ("normal", "pubsub"):
            guest.execute_command("CLIENT", "KILL", "TYPE", kind)
        yield
        guest.config_set("maxclients", 1000)


@contextmanager
def slow_to_load(server: Server) -> Iterator[None]:
    server.kill()
    yield
    slowly = ("--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024")
    server.process = start_redis(server.folder, *server.options, *slowly)


STATES = {
    "NOREPLICAS": between(("CONFIG", "SET", "min-replicas-to-write", 1), "CONFIG", "SET", "min-replicas-to-write", 0),
    "MASTERDOWN": cut_off_and_stale,
    "MISCONF": unable_to_save,
    "BUSY": busy,
    "max number of clients": crowded,
    "LOADING": slow_to_load,
}


@pytest.mark.fault("F50")
def test_whatever_a_server_says_of_itself_is_told_once_when_it_begins_and_once_when_it_is_over(away, own_server):
    with away.pool("--workers", "1", config=QUICK) as pool:
        before = pool.workers()
        for times, state in enumerate(STATES.values(), start=1):
            with state(own_server):
                eventually(lambda times=times: times == pool.log().count("store lost"))
            eventually(lambda times=times: times == pool.log().count("store regained"))
            away.push("ok")
            eventually(lambda times=times: times == len(away.trail(event="end")))
        assert before == pool.workers()

    assert [len(STATES)] * 2 == [pool.log().count(f"store {word}") for word in ("lost", "regained")]
    assert "Traceback" not in pool.log()


OWN_NAMES = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"']


@contextmanager
def server_at(address: str, port: int) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, "--bind", address, "--port", str(port), "--protected-mode", "no")
        try:
            yield server
        finally:
            server.kill()


def served(site: Site, server: Server) -> Site:
    """The same place; what is pushed goes to this server."""
    queue = Queue(replace(site.connection, url=f"unix://{server.path}"))
    return replace(site, queue=queue)


@pytest.mark.fault("F59")
@pytest.mark.skipif(
    subprocess.call([*OWN_NAMES, "/etc/hosts", "true"], stderr=subprocess.DEVNULL) != 0, reason="needs unshare"
)
def test_a_name_is_looked_up_again_and_its_dead_address_is_passed_over(site, tmp_path):
    port, hosts = free_port(), tmp_path / "hosts"
    hosts.write_text("127.0.0.2 queue.test\n127.0.0.9 queue.test\n")  # sorted by the library: the nearest first
    flags = site.flags("--url", f"redis://queue.test:{port}", "--runtime-dir", str(tmp_path / "run"), "--workers", "1")
    command = [*OWN_NAMES, str(hosts), sys.executable, "-m", "queuepool", "start", *flags]
    with (tmp_path / "log").open("wb") as log, server_at("127.0.0.9", port) as first:
        served(site, first).push("ok")
        pool = subprocess.Popen(command, env=site.env(), stderr=log)
        try:
            eventually(lambda: site.trail(event="end"))
            first.kill()
            with server_at("127.0.0.12", port) as second:
                hosts.write_text("127.0.0.12 queue.test\n")
                served(site, second).push("ok")
                eventually(lambda: 2 == len(site.trail(event="end")))
                pool.terminate()
                assert 0 == pool.wait(timeout=60)
        finally:
            pool.kill()
            pool.wait()
