"""The real Laravel, driven through tests/laravel/peer.php."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.lines import whole_lines

SCRIPT = Path(__file__).parents[1] / "laravel" / "peer.php"
LIMIT = 60.0

_PARTS = ("Queue", "Redis", "Events", "Cache", "Bus", "Database", "Console", "Encryption")
_PROBE = """
[$parts, $extensions] = array_map(fn ($words) => explode(',', $words), array_slice($argv, 1));
exit(array_filter($extensions, fn ($name) => !extension_loaded($name))
    || array_filter($parts, fn ($part) => !stream_resolve_include_path("Illuminate/$part/autoload.php")) ? 1 : 0);
"""


@dataclass(frozen=True, slots=True)
class Talk:
    """A Laravel process that keeps running; each request sets its clock."""

    php: subprocess.Popen[str]

    def ask(self, verb: str, **order: object) -> Any:
        assert self.php.stdin
        assert self.php.stdout
        self.php.stdin.write(json.dumps({"verb": verb, **order}) + "\n")
        self.php.stdin.flush()
        answer = self.php.stdout.readline()
        assert answer, f"peer.php died of {verb}"
        return json.loads(answer)


@dataclass(frozen=True, slots=True)
class Peer:
    """A Laravel application on one store: Redis, unless ``url`` names a database. Its jobs write to ``out``.

    On Redis its failures go there too; on a database they are rows of ``failed_jobs``.
    """

    socket: str
    prefix: str
    out: Path
    url: str = ""

    @classmethod
    def on(cls, url: str, out: Path) -> Peer:
        """A peer on a database, by the same URL as queuepool's."""
        return cls("", "", out, url)

    def run(self, command: str, *args: str, **flags: object) -> dict[str, Any]:
        """The JSON answer of one command; ``max_jobs=1`` is ``--max-jobs=1``, ``once=True`` is ``--once``."""
        done = subprocess.run(
            ["php", str(SCRIPT), command, *args, *_options(flags)],
            env=self._env(),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        # Laravel's worker kills itself if a job times out; a shell, or supervisord, sees 137.
        if "work" == command and -signal.SIGKILL == done.returncode:
            return {"status": 128 + signal.SIGKILL}
        assert 0 == done.returncode, f"peer.php {command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return dict(json.loads(done.stdout))

    @contextmanager
    def serving(self) -> Iterator[Talk]:
        """One process for many requests."""
        with self.staying("serve") as php:
            yield Talk(php)

    @contextmanager
    def staying(self, command: str, *args: str, **flags: object) -> Iterator[subprocess.Popen[str]]:
        """A running process, killed at the end."""
        words = ["php", str(SCRIPT), command, *args, *_options(flags)]
        with subprocess.Popen(words, env=self._env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as php:
            try:
                yield php
            finally:
                php.kill()

    def lines(self) -> list[dict[str, Any]]:
        """What the jobs and the failure log wrote, oldest first."""
        return [json.loads(line) for line in whole_lines(self.out)]

    def _env(self) -> dict[str, str]:
        own = {"QP_SOCKET": self.socket, "QP_PREFIX": self.prefix, "QP_OUT": str(self.out), "QP_URL": self.url}
        return {**os.environ, **own}


def require_php(*drivers: str) -> None:
    """Skip the test without PHP, phpredis, Illuminate and the PDO ``drivers``; fail it if CI is set."""
    extensions = ("redis", "pcntl", *(f"pdo_{driver}" for driver in drivers))
    if is_installed(extensions):
        return
    needed = f"php with {', '.join(extensions)} and Illuminate's packages"
    if "CI" in os.environ:
        pytest.fail(f"{needed} is missing")
    pytest.skip(f"needs {needed}")


@cache
def is_installed(extensions: tuple[str, ...]) -> bool:
    probe = ["php", "-r", _PROBE, "--", ",".join(_PARTS), ",".join(extensions)]
    try:
        return 0 == subprocess.run(probe, timeout=LIMIT, check=False).returncode
    except FileNotFoundError:
        return False


def _options(flags: dict[str, object]) -> list[str]:
    return [_option(name.replace("_", "-"), value) for name, value in flags.items() if value is not False]


def _option(name: str, value: object) -> str:
    return f"--{name}" if value is True else f"--{name}={value}"
