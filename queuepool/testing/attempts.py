"""The attempts that ran in a test, and their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from queuepool.testing.pushes import Pushes

Outcome = Literal["done", "released", "failed", "quarantined"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a job. ``name`` and ``id`` are empty for a payload that is not a job."""

    id: str
    name: str
    queue: str
    #: which attempt of the job this was, from 1
    attempt: int
    outcome: Outcome
    #: why the job failed or is tried again; for a job that is done, what its handler or hook raised all the same
    error: BaseException | None = None
    #: seconds until the next attempt of a released job
    delay: float | None = None

    def __str__(self) -> str:
        error = "" if self.error is None else f": {self.error!r}"
        return f"{self.name or 'a payload that is not a job'} (attempt {self.attempt}) {self.outcome}{error}"


class Ran:
    """The attempts that ran."""

    def __init__(self, settle: Callable[[], object] = lambda: None) -> None:
        self._settle = settle
        self._attempts: list[Attempt] = []

    def __repr__(self) -> str:
        return "\n  ".join([f"ran ({len(self._attempts)}):", *map(str, self._attempts)])

    @property
    def attempts(self) -> list[Attempt]:
        """All attempts, in order; a job that was tried again has several."""
        self._settle()
        return self._attempts

    def add(self, attempt: Attempt) -> None:
        """Called after each attempt."""
        self._attempts.append(attempt)

    def last(self, most: int) -> Attempt | None:
        """The last one if there were at least ``most``."""
        return self._attempts[-1] if len(self._attempts) >= most else None

    @property
    def done(self) -> list[Attempt]:
        """The attempts that completed a job."""
        return self._of("done")

    @property
    def released(self) -> list[Attempt]:
        """The attempts after which the job is to be tried again."""
        return self._of("released")

    @property
    def failed(self) -> list[Attempt]:
        """The attempts with which a job failed for good, and payloads that are not jobs."""
        return self._of("failed") + self._of("quarantined")

    def _of(self, outcome: Outcome) -> list[Attempt]:
        return [one for one in self.attempts if one.outcome == outcome]


class RanNow(Ran):
    """What ran in a ``run_now``, and what was pushed there."""

    #: what was pushed, and assertions about it
    pushed: Pushes

    def __init__(self, pushed: Pushes, settle: Callable[[], object]) -> None:
        super().__init__(settle)
        self.pushed = pushed
