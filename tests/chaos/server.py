"""A private Redis with persistent data, and what can be done to it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

import redis

_TOOL = "/usr/bin/redis-check-rdb"  # the whole server, in Debian's redis-tools


class Server:
    """On ``FOLDER/redis.sock``, with AOF: a killed server has lost nothing."""

    def __init__(self, folder: Path, password: str) -> None:
        self.folder = folder
        self.socket = str(folder / "redis.sock")
        self.password = password
        self.url = f"unix://:{password}@{self.socket}"
        self.client = redis.Redis(unix_socket_path=self.socket, password=password, socket_timeout=5, retry=None)
        #: command words before the server's, and its options
        self.preface: list[str] = []
        self.options = ["--port", "0"]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str, wait: bool = True) -> None:
        program = self.folder / "redis-server"  # what it does depends on its name
        if not program.is_symlink():
            program.symlink_to(shutil.which("redis-server") or _TOOL)
        usual = ["--unixsocket", self.socket, "--dir", str(self.folder), "--save", ""]
        # By default it holds writes back that it has answered, while the disk is busy.
        usual += [
            "--appendonly",
            "yes",
            "--appendfsync",
            "no",
            "--requirepass",
            self.password,
            "--logfile",
            str(self.folder / "redis.log"),
        ]
        self.process = subprocess.Popen([*self.preface, str(program), *self.options, *usual, *options])
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self, within: float = 30.0) -> None:
        deadline = time.monotonic() + within
        while not self.answers():
            if time.monotonic() > deadline:
                raise TimeoutError("the server does not answer")
            time.sleep(0.005)

    def answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False

    def say(self, *words: object) -> None:
        """One command, whose answer does not matter."""
        try:
            self.client.execute_command(*words)
        except redis.RedisError:
            return  # it may cut off the client that sent it

    def kill(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    def signal(self, signum: signal.Signals) -> None:
        if self.process:
            self.process.send_signal(signum)
