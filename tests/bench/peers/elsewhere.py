"""Queues whose packages do not go with the others': each has an environment, and in it a process that pushes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.bench.rig import ROOT

#: what each is installed from
REQUIREMENTS = Path(__file__).with_name("requirements")


class Elsewhere(NamedTuple):
    """What an environment has: its queues, and the versions of what was asked for."""

    peers: list[Remote]
    about: str


def found(name: str) -> AbstractContextManager[Elsewhere]:
    """What its environment has."""
    return reached(name, ROOT / f".venv-peers-{name}/bin/python", pinned(REQUIREMENTS / f"{name}.txt"))


@contextmanager
def reached(name: str, python: Path, packages: list[str]) -> Iterator[Elsewhere]:
    """Imported there, once it is known where the stage is. What cannot be imported there is left out."""
    if not python.exists():
        yield _left_out(name)
        return
    words = [str(python), "-m", "tests.bench.peers.feeder", name, *packages]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as feeder:
        yield _introduced(feeder) or _left_out(name)


def _introduced(feeder: subprocess.Popen[str]) -> Elsewhere | None:
    assert feeder.stdin
    assert feeder.stdout
    line = Line(feeder.stdin, feeder.stdout)
    with suppress(EOFError):
        first = line.read()
        return Elsewhere([Remote(line, number, facts) for number, facts in enumerate(first["peers"])], first["about"])
    return None


def _left_out(name: str) -> Elsewhere:
    return Elsewhere([], f"{name} could not be measured here")


def pinned(requirements: Path) -> list[str]:
    """The packages that a file of requirements names."""
    lines = [line.partition("==")[0].partition("[")[0] for line in requirements.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


class Line(NamedTuple):
    """To a feeder, which ends when it is closed."""

    there: IO[str]
    back: IO[str]

    def ask(self, *request: object) -> Any:
        self.there.write(f"{json.dumps(request)}\n")
        self.there.flush()
        return self.read()

    def read(self) -> Any:
        """Raises ``EOFError`` if the process has ended, whose own words are above."""
        answer = self.back.readline()
        if not answer:
            raise EOFError("the queue's process has ended")
        return json.loads(answer)


class Remote:
    """One queue there. How long it takes to push is not measured, as each push is asked for over a pipe."""

    pushes = False

    def __init__(self, line: Line, number: int, facts: dict[str, Any]) -> None:
        self.name: str = facts["name"]
        self.settings: str = facts["settings"]
        self.keeps: bool = facts["keeps"]
        self.strengths: dict[str, str] = facts["strengths"]
        self.fields = frozenset[str](facts["fields"])
        self._line, self._number = line, number

    def push(self, job: str, n: int) -> None:
        self.bulk(job, [n])

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        """Numbers one after the other."""
        self._line.ask(self._number, "bulk", [job, numbers[0], numbers[-1] + 1])

    def push_singly(self, jobs: int, pause: float) -> list[float]:
        """There: so the pipe takes no part of what is measured. All processes of a machine have one monotonic clock."""
        pushed: list[float] = self._line.ask(self._number, "push_singly", [jobs, pause])
        return pushed

    def commands(self, workers: int) -> list[list[str]]:
        words: list[list[str]] = self._line.ask(self._number, "commands", [workers])
        return words
