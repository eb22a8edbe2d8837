"""The parent of several pools: forks a master for each, forwards signals, and notifies the service manager of all."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.errors import QueuepoolError
from queuepool.master.herald import PASS, Herald, Signs
from queuepool.master.signs import SignsOfPool
from queuepool.unix import fork, proc, signals

#: seconds between two looks at the masters when no service manager waits for pings
_TICK = 1.0
#: age of a master's beat in seconds at which the service is no longer live
_MAX_AGE = 5.0
#: most characters of pool names in the title
_MAX_NAMES = 100
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Parent:
    """Runs until every master has ended."""

    def __init__(self, pools: Sequence[PoolSettings], herald: Herald) -> None:
        self._pools = pools
        self._herald = herald
        self._masters: dict[int, _Watched] = {}
        self._is_stopping = False

    def run(self, main: Callable[[PoolSettings], int]) -> int:
        """Fork a master for each pool, which runs ``main``; returns the worst exit code."""
        mailbox, worst = signals.Mailbox(), 0
        self._show(len(self._pools))
        self._masters = {fork.spawn(lambda pool=pool: main(pool)): _Watched(pool) for pool in self._pools}  # type: ignore[misc]
        while self._masters:
            self._forward(mailbox.next(PASS if self._herald else _TICK))
            for pid, status in fork.reap(self._masters):
                self._masters.pop(pid, None)
                worst = max(worst, abs(os.waitstatus_to_exitcode(status)))
            if self._herald and self._masters:
                self._herald.notify(self._signs(), time.monotonic())
        return worst

    def _forward(self, signum: int | None) -> None:
        if signum is None or signum == signal.SIGCHLD:
            return
        if signum in _STOPS:
            self._is_stopping = True
            self._show(len(self._masters))
        for pid in self._masters:
            fork.send_signal(pid, signal.Signals(signum))

    def _show(self, masters: int) -> None:
        proc.show(f"queuepool: parent [{_shortened([pool.name for pool in self._pools])}] {self._words(masters)}")

    def _words(self, masters: int) -> str:
        return f"{'draining' if self._is_stopping else 'running'} masters={masters}"

    def _signs(self) -> Signs:
        found = [watched.signs(pid) for pid, watched in self._masters.items()]
        return Signs(
            self._words(len(found)),
            is_ready=all(one.is_ready for one in found),
            is_reloading=any(one.is_reloading for one in found),
            is_stopping=self._is_stopping,
            until=max(one.until for one in found),
            is_live=all(one.is_live for one in found),
        )


class _Watched:
    """One of the pools, seen through its board."""

    def __init__(self, settings: PoolSettings) -> None:
        self._settings = settings
        self._runtime = RuntimeDir(settings)
        self._signs: SignsOfPool | None = None

    def signs(self, master: int) -> Signs:
        """Of the pool of this master. Before it has a board it is starting."""
        if self._signs is None:
            with suppress(QueuepoolError):  # there is no board yet
                board = self._runtime.board()
                if board.name.pid == master:  # not that of a pool of this name that ran before
                    self._header = board.header
                    self._signs = SignsOfPool(self._settings, board)
        if self._signs is None:
            return Signs("", is_ready=False)
        return self._signs.now()._replace(is_live=time.monotonic() - self._header.beat < _MAX_AGE)


def _shortened(names: Sequence[str]) -> str:
    shown = ",".join(names)
    return shown if len(shown) <= _MAX_NAMES else shown[:_MAX_NAMES] + "..."
