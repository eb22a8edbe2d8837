"""A primary with replicas and the sentinels that watch it, each a real process on a port of its own."""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import redis

from tests.support.eventually import eventually
from tests.support.places import HERE, Place
from tests.support.processes import halt
from tests.support.redis_server import free_port, redis_binary

NAME = "jobs"
#: a sentinel's line of its log when it hears of a failover
_SWITCH = re.compile(r"^\d+:X (\d+ \w+ \d+ [\d:.]+) # \+switch-master \S+ \S+ \d+ \S+ (\d+)$", re.MULTILINE)


class Process:
    """One server or sentinel, which may be killed, stopped and started again."""

    def __init__(self, folder: Path, program: str, lines: Sequence[str], place: Place = HERE, binary: str = "") -> None:
        self.address, self.port = place.address, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._preface = place.preface
        folder = folder / f"{program}-{self.port}"
        folder.mkdir()
        self._program = folder / program  # what it does depends on its name
        self._program.symlink_to(binary or redis_binary())
        self._file = folder / "its.conf"
        self.log_file = self._file.with_suffix(".log")
        common = f"port {self.port}", f"dir {folder}", f"logfile {self.log_file}"
        self.configure([*common, f"bind {place.address}", "protected-mode no", *lines])

    @property
    def where(self) -> str:
        return f"{self.address} {self.port}"

    def configure(self, lines: Sequence[str]) -> None:
        """Add lines to its configuration, before it starts."""
        with self._file.open("a") as file:
            file.write("\n".join(lines) + "\n")

    def start(self) -> None:
        words = [*self._preface, str(self._program), str(self._file)]
        words += ["--sentinel"] if self._program.name == "redis-sentinel" else []
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        eventually(self.answers)

    def kill(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Leave it without the processor until it is killed, or told to go on."""
        assert self.process
        halt(self.process.pid)

    def go_on(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGCONT)

    def say(self, *words: object) -> Any:
        with redis.Redis(self.address, self.port, decode_responses=True) as client:
            return client.execute_command(*words)

    def heard(self) -> Iterator[tuple[float, int]]:
        """By a sentinel: when (Unix seconds) it heard of each failover, and the port of the new primary."""
        for at, port in _SWITCH.findall(self.log_file.read_text()):
            yield datetime.strptime(at, "%d %b %Y %H:%M:%S.%f").timestamp(), int(port)

    def answers(self) -> bool:
        try:
            with redis.Redis(self.address, self.port) as client:
                return bool(client.ping())
        except redis.AuthenticationError:
            return True  # it runs and wants a password
        except (redis.ConnectionError, redis.BusyLoadingError):
            return False


class Sentinels:
    """``count`` sentinels, a primary and its replicas. ``password``: of the servers; ``login``: of the sentinels.

    ``servers_at``, ``sentinels_at``: where each of them runs; ``binary``: of whom, if not Redis'.
    """

    def __init__(
        self, folder: Path, replicas: int = 2, count: int = 3, password: str = "", login: str = "",
        servers_at: Sequence[Place] = (HERE,) * 3, sentinels_at: Sequence[Place] = (HERE,) * 3,
        binary: str = "",
    ) -> None:  # fmt: skip
        secret = [f"requirepass {password}", f"masterauth {password}"] if password else []
        usual = ['save ""', "repl-diskless-sync-delay 0", "repl-backlog-size 16mb", *secret]
        first = Process(folder, "redis-server", usual, servers_at[0], binary)
        usual = [*usual, f"replicaof {first.where}"]
        others = servers_at[1 : replicas + 1]
        self.servers = [first, *(Process(folder, "redis-server", usual, at, binary) for at in others)]
        self.sentinels = [Process(folder, "redis-sentinel", [], at, binary) for at in sentinels_at[:count]]
        self._password, self._login = password, login
        self._introduce(first)

    def _introduce(self, first: Process) -> None:
        """Write down who there is: to find each other takes sentinels up to twelve seconds."""
        watch = [f"sentinel monitor {NAME} {first.where} {len(self.sentinels) // 2 + 1}"]
        watch += [f"sentinel {what} {NAME} {ms}" for what, ms in TIMES.items()]
        watch += [f"sentinel known-replica {NAME} {one.where}" for one in self.servers[1:]]
        watch += [f"sentinel auth-pass {NAME} {self._password}"] if self._password else []
        watch += [f"requirepass {self._login}", f"sentinel sentinel-pass {self._login}"] if self._login else []
        ids = {one: secrets.token_hex(20) for one in self.sentinels}
        for one in self.sentinels:
            others = [f"sentinel known-sentinel {NAME} {it.where} {ids[it]}" for it in ids if it is not one]
            one.configure([f"sentinel myid {ids[one]}", *watch, *others])

    @property
    def url(self) -> str:
        return self.url_of(self._password, self._login)

    def url_of(self, password: str, login: str, name: str = NAME) -> str:
        hosts = ",".join(f"{one.address}:{one.port}" for one in self.sentinels)
        query = f"?sentinel_password={login}" if login else ""
        return f"redis+sentinel://{f':{password}@' if password else ''}{hosts}/{name}/0{query}"

    def start(self) -> None:
        for one in (*self.servers, *self.sentinels):
            one.start()
        if not (self._password or self._login):
            eventually(lambda: all(self._is_followed(one) for one in self.servers[1:]))
            eventually(lambda: all(self._is_ready(one) for one in self.sentinels))

    def kill(self) -> None:
        for one in (*self.sentinels, *self.servers):
            one.kill()

    def primary(self) -> Process:
        """The one that the first sentinel names that runs."""
        alive = next(one for one in self.sentinels if one.is_alive)
        port = int(alive.say("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)[1])
        return next(one for one in self.servers if one.port == port)

    def fail_over(self, *how: str) -> None:
        """By hand, while the primary is well: both then call themselves the primary for ten seconds."""
        eventually(lambda: self._begins_to_fail_over(*how))

    def _begins_to_fail_over(self, *how: str) -> bool:
        try:
            return bool(self.sentinels[0].say("SENTINEL", "FAILOVER", NAME, *how))
        except redis.ResponseError:  # no replica is known to be well yet, or the last failover is not over
            return False

    def switches(self) -> list[tuple[float, int]]:
        """As ``heard``, of the sentinel that was the first to hear of each."""
        heard = [list(one.heard()) for one in self.sentinels]
        longest = max(map(len, heard))
        return [min(times[number] for times in heard if number < len(times)) for number in range(longest)]

    def all_heard(self) -> float:
        """When the last of the sentinels heard of the last switch; until then it may lead to the old primary."""
        return max(at for one in self.sentinels for at, _ in one.heard())

    def _is_followed(self, replica: Process) -> bool:
        return bool(replica.say("ROLE")[3] == "connected")

    def _is_ready(self, one: Process) -> bool:
        try:
            found = one.say("SENTINEL", "CKQUORUM", NAME)
        except redis.ResponseError:  # it has not heard from the others yet
            return False
        facts = [
            dict(zip(flat[::2], flat[1::2], strict=True)) for flat in map(_flat, one.say("SENTINEL", "REPLICAS", NAME))
        ]
        return str(found).startswith("OK") and all(fact.get("master-link-status") == "ok" for fact in facts)


def _flat(found: Any) -> list[str]:
    return [word for pair in found.items() for word in pair] if isinstance(found, dict) else list(found)


#: how fast sentinels find a primary dead, and how soon they try again
TIMES = {"down-after-milliseconds": 700, "failover-timeout": 3000}


@contextmanager
def running(folder: Path, **about: Any) -> Iterator[Sentinels]:
    """Sentinels that are at work."""
    found = Sentinels(folder, **about)
    try:
        found.start()
        yield found
    finally:
        found.kill()
