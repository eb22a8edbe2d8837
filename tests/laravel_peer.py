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

SCRIPT = Path(__file__).parent / "laravel" / "peer.php"
LIMIT = 30.0

_PROBE = """
exit(extension_loaded('redis') && extension_loaded('pcntl')
    && !array_diff(['Queue', 'Redis', 'Events', 'Cache', 'Bus'], array_filter(
        ['Queue', 'Redis', 'Events', 'Cache', 'Bus'],
        fn ($part) => stream_resolve_include_path("Illuminate/$part/autoload.php"))) ? 0 : 1);
"""


@dataclass(frozen=True, slots=True)
class Talk:
    """A Laravel that stays; its clock stands where each order says."""

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
    """One Laravel application on one Redis; its jobs and its failures write to ``out``."""

    socket: str
    prefix: str
    out: Path

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
        # Laravel's worker kills itself when a job times out; a shell, or supervisord, sees 137.
        if "work" == command and -signal.SIGKILL == done.returncode:
            return {"status": 128 + signal.SIGKILL}
        assert 0 == done.returncode, f"peer.php {command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return dict(json.loads(done.stdout))

    @contextmanager
    def serving(self) -> Iterator[Talk]:
        """One process for many orders."""
        command = ["php", str(SCRIPT), "serve"]
        with subprocess.Popen(
            command, env=self._env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as php:
            try:
                yield Talk(php)
            finally:
                php.kill()

    def lines(self) -> list[dict[str, Any]]:
        """What the jobs and the failure log wrote, oldest first."""
        if not self.out.exists():
            return []
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def _env(self) -> dict[str, str]:
        return {**os.environ, "QP_SOCKET": self.socket, "QP_PREFIX": self.prefix, "QP_OUT": str(self.out)}


def require_php() -> None:
    """Skip without PHP, phpredis and Illuminate; fail instead where CI is set."""
    if _installed():
        return
    if "CI" in os.environ:
        pytest.fail("php with phpredis, pcntl and Illuminate's packages is missing")
    pytest.skip("needs php with phpredis, pcntl and Illuminate's packages")


@cache
def _installed() -> bool:
    try:
        return 0 == subprocess.run(["php", "-r", _PROBE], timeout=LIMIT, check=False).returncode
    except FileNotFoundError:
        return False


def _options(flags: dict[str, object]) -> list[str]:
    return [_option(name.replace("_", "-"), value) for name, value in flags.items() if value is not False]


def _option(name: str, value: object) -> str:
    return f"--{name}" if value is True else f"--{name}={value}"
