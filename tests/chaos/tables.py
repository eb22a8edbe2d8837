"""What is known of each job while the history is read: columns of numbers, as there are millions of jobs."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

INVOKED, OK, FINISHED, FAILED, STORED = 1, 2, 4, 8, 16
#: jobs that a column grows by
_CHUNK = 65536


class Stream:
    """The jobs of one producer, numbered from 0: ``PRODUCER.NUMBER`` is a job's id."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = bytearray()
        self.starts = array("H")
        self.attempt = array("H")
        self.pid = array("i")
        self.pushed = array("q")
        self.started = array("q")
        self.finished = array("q")

    @property
    def is_retried(self) -> bool:
        """Whether its jobs fail whenever they are tried, and are tried again by people."""
        return self.name == "r"

    def reach(self, number: int) -> None:
        """Make room for this number."""
        while len(self.state) <= number:
            self.state.extend(bytes(_CHUNK))
            for column in (self.starts, self.attempt, self.pid, self.pushed, self.started, self.finished):
                column.frombytes(bytes(_CHUNK * column.itemsize))

    def mark(self, number: int, flag: int) -> None:
        self.reach(number)
        self.state[number] |= flag

    def has(self, number: int, flag: int) -> bool:
        return bool(self.state[number] & flag)

    def numbers(self, flag: int) -> Iterator[int]:
        """Every job with this flag."""
        return (number for number, state in enumerate(self.state) if state & flag)

    def id(self, number: int) -> str:
        return f"{self.name}.{number}"


def is_ours(job_id: str) -> bool:
    """Whether it is of a producer here: what another store holds is not to be touched."""
    return job_id.rpartition(".")[2].isdecimal()


class Jobs:
    """All streams, by the first part of an id."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        if name not in self.streams:
            self.streams[name] = Stream(name)
        return self.streams[name]

    def find(self, job_id: str) -> tuple[Stream, int]:
        """The stream and the number, with room made for it."""
        name, _, number = job_id.rpartition(".")
        stream = self.stream(name)
        stream.reach(int(number))
        return stream, int(number)
