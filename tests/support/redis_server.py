"""A private Redis server on a unix socket."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.eventually import eventually

#: what the tests' keys begin with, as in a Laravel application
PREFIX = "laravel_database_"
#: Debian's redis-tools has the whole server under this name; it chooses its role by argv[0]
TOOL = "/usr/bin/redis-check-rdb"
#: where scripts/setup has put Valkey's, below the virtual environment
VALKEY = "**/valkey-server"
#: ports for servers; chosen by chance, and no test's seed makes it the same one in two processes
_BELOW_CLIENTS, _CHANCE = range(15_000, 32_000), random.SystemRandom()
_GIVEN = set[int]()


def start_redis(folder: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a private server on ``FOLDER/redis.sock``, ready to answer; the caller must end it."""
    binary = redis_binary()
    path = f"{folder}/redis.sock"
    usual = ["--port", "0", "--unixsocket", path, "--dir", folder, "--save", ""]
    server = subprocess.Popen(["redis-server", *usual, *options], executable=binary, stdout=subprocess.DEVNULL)
    eventually(lambda: server.poll() is not None or answers(path))
    return server


def redis_binary() -> str:
    """Redis' program. Without it, skips the test, or fails it if CI is set."""
    binary = shutil.which("redis-server") or shutil.which(TOOL)
    if binary is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs redis-server")
    return str(binary)


def valkey_binary() -> str:
    """Valkey's, as for Redis."""
    found = [*Path(sys.prefix, "valkey").glob(VALKEY)]
    binary = shutil.which("valkey-server") or (str(found[0]) if found else None)
    if binary is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs valkey-server")
    return str(binary)


def free_port() -> int:
    """A port that nobody has; none of those that the kernel gives to clients: one may have it a moment later.

    Nor one that was given before: its server may not have started yet.
    """
    while True:
        port = _CHANCE.choice(_BELOW_CLIENTS)
        with socket.socket() as probe, suppress(OSError):  # somebody has it
            probe.bind(("127.0.0.1", port))
            if port not in _GIVEN:
                _GIVEN.add(port)
                return port


class Server:
    """One test's own server; its data outlives a kill (AOF)."""

    def __init__(self, folder: str, *options: str) -> None:
        self.folder = folder
        self.path = f"{folder}/redis.sock"
        self.options = ("--appendonly", "yes", "--appendfsync", "always", *options)
        self.start()

    def start(self) -> None:
        self.process = start_redis(self.folder, *self.options)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def say(self, *words: object) -> Any:
        """Send one command; returns the answer."""
        with redis.Redis(unix_socket_path=self.path) as client:
            return client.execute_command(*words)


def answers(path: str) -> bool:
    """Whether it does; its socket is there before anybody listens to it."""
    try:
        with redis.Redis(unix_socket_path=path, retry=Retry(NoBackoff(), 0)) as client:
            return bool(client.ping())
    except redis.AuthenticationError:
        return True  # it runs and wants a password
    except redis.ConnectionError:
        return False
