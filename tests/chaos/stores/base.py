"""What the chaos run needs of a store: a server to start and stop, faults of its own, and a view from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.chaos.rig import Rig

#: by name: what does the harm, and how often it comes
Nemeses = dict[str, tuple[Callable[["Rig"], Iterator[float]], int]]


#: a pool's: how it names the store, and what its master is started by
Place = tuple[str, list[str]]


class Store(Protocol):
    """Holds what was committed through any death of its server. ``url`` and ``far`` are known once it is started."""

    #: for the pool near it, and for the one behind a bad network; the same where there is none
    url: str
    far: str
    #: of the keys in Redis
    prefix: str
    nemeses: Nemeses
    #: seconds until what it was asked is in ``commands``
    counts_after: float

    def start(self) -> None: ...

    def places(self) -> list[Place]:
        """Of the near pool and of the far one."""

    def away(self) -> AbstractContextManager[object]:
        """It does not answer meanwhile."""

    def wait_until_ready(self) -> None: ...

    def heal(self) -> None:
        """Whatever a nemesis may have left; it is ready then."""

    def end(self) -> None:
        """In whatever state it is."""

    def pids(self) -> set[int]:
        """Its own processes, which are no orphans."""

    def laravel(self) -> dict[str, str]:
        """What tells Laravel's peer of it."""

    def left(self) -> int:
        """Jobs in the queues, of whatever state."""

    def stored(self) -> Iterator[tuple[str, bytes]]:
        """Every payload that it still knows, and where it is."""

    def at_once(self) -> Iterator[list[bytes]]:
        """Payloads that are stored at one moment: in none of these lists may a job be twice."""

    def outcomes(self) -> list[bytes]:
        """What waits for Laravel."""

    def states(self) -> Iterator[tuple[str, bytes]]:
        """The id and the state of each tracked job."""

    def steps_and_locks(self) -> tuple[list[bytes], list[str]]:
        """At one moment: the payloads of steps that are still to be done, and the names of all unique locks."""

    def clients(self) -> int:
        """The number of open connections; 0 if no server counts them."""

    def commands(self, pids: Iterable[int]) -> int:
        """How much has been asked of it so far, by these processes if it cannot say so itself."""

    def needed(self, workers: int) -> float:
        """How much an idle pool asks in a second."""
