"""What was pushed in a test, and assertions about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from queuepool.jobs.delay import Delay
from queuepool.testing.expected import Expected, check_own, expected, job_name
from queuepool.testing.pushed import PushedJob

_WAIT = "waiting for a commit, and not pushed before that"


class Pushes:
    """The jobs that were pushed, in order; a sequence of ``PushedJob``. An assertion that fails lists them.

    ``job`` is a job function, a ``Job`` class, an object of one, a task of Django's, or a name. Arguments are compared
    as a call: by name, with defaults. Without any, all calls count. ``delay`` takes what ``later`` takes, and may
    differ by a second. The assertions raise ``AssertionError``, and ``TypeError`` for what no push of that job can be.
    """

    def __init__(self, settle: Callable[[], object], waiting: Callable[[], list[PushedJob]]) -> None:
        self._settle, self._waiting = settle, waiting
        self._recorded: list[PushedJob] = []

    @property
    def waiting(self) -> list[PushedJob]:
        """The jobs that wait for a commit: they are not pushed yet."""
        self._settle()
        return self._waiting()

    @property
    def _jobs(self) -> list[PushedJob]:
        self._settle()
        return self._recorded

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[PushedJob]:
        return iter(self._jobs)

    def __getitem__(self, index: int) -> PushedJob:
        return self._jobs[index]

    def __repr__(self) -> str:
        jobs, waiting = self._jobs, self._waiting()
        lines = [_listed("pushed", jobs) if jobs else "nothing was pushed"]
        return "\n".join([*lines, _listed(_WAIT, waiting)] if waiting else lines)

    def of(self, job: object) -> list[PushedJob]:
        """The pushes of one job."""
        name = job_name(job)
        return [pushed for pushed in self._jobs if pushed.name == name]

    def assert_pushed(
        self,
        job: object,
        /,
        *args: Any,
        queue: str | None = None,
        delay: Delay | None = None,
        times: int | None = None,
        **kwargs: Any,
    ) -> PushedJob:
        """The job was pushed with these arguments; returns the first such push.

        ``queue``, ``delay``: where to, and with which delay; ``None`` = any. ``times``: exactly so often; ``None`` = at
        least once.
        """
        __tracebackhide__ = True
        if times is not None and times < 1:
            raise ValueError(f"times cannot be {times!r}: use assert_not_pushed")
        wanted = _wanted(job, args, kwargs, queue, delay, times)
        found = list(filter(wanted.fits, self._jobs))
        if not found:
            raise AssertionError(f"{wanted} was never pushed\n{self!r}")
        if times not in (None, len(found)):
            raise AssertionError(
                f"{wanted} was pushed {len(found)} time{'s' * (len(found) > 1)}, not {times}\n{self!r}"
            )
        return found[0]

    def assert_not_pushed(
        self, job: object, /, *args: Any, queue: str | None = None, delay: Delay | None = None, **kwargs: Any
    ) -> None:
        """The job was not pushed with these arguments."""
        __tracebackhide__ = True
        wanted = _wanted(job, args, kwargs, queue, delay)
        if any(map(wanted.fits, self._jobs)):
            raise AssertionError(f"{wanted} was pushed\n{self!r}")

    def assert_nothing_pushed(self) -> None:
        """No job was pushed."""
        __tracebackhide__ = True
        if self._jobs:
            raise AssertionError(f"jobs were pushed\n{self!r}")

    def assert_count(self, count: int, job: object = None) -> None:
        """So many jobs were pushed, or so many of one job."""
        __tracebackhide__ = True
        found = len(self) if job is None else len(self.of(job))
        if found != count:
            what = "" if job is None else f" of {job_name(job)}"
            raise AssertionError(f"the number of pushes{what} is {found}, not {count}\n{self!r}")

    def add(self, jobs: Sequence[PushedJob]) -> None:
        """Called for each push."""
        self._recorded.extend(jobs)


def _listed(title: str, jobs: Sequence[PushedJob]) -> str:
    return "\n  ".join([f"{title} ({len(jobs)}):", *map(str, jobs)])


def _wanted(
    job: object, args: Any, kwargs: Any, queue: str | None, delay: Delay | None, times: int | None = None
) -> Expected:
    check_own(job, {"queue": queue, "delay": delay, "times": times})
    return expected(job, args, kwargs, queue, delay)
