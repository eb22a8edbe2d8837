"""The parent of several pools: keeps a master alive for each, forwards signals, and speaks to the service manager."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from functools import partial

from queuepool.board.board import State
from queuepool.board.fields import Totals
from queuepool.board.status import title
from queuepool.config.settings import PoolSettings
from queuepool.master.service_manager import PASS, Herald, Signs
from queuepool.pool.member import Member
from queuepool.unix import fork, proc, signals

#: seconds between two looks at the masters when no service manager waits for pings
_TICK = 1.0
#: most characters of pool names in the title
_MAX_NAMES = 100


class Parent:
    """Runs until every pool has ended."""

    def __init__(self, pools: Sequence[PoolSettings], herald: Herald) -> None:
        self._members = [Member(pool) for pool in pools]
        self._herald = herald
        self._shown = ""
        #: whether all pools have become ready, once
        self._is_ready = False
        self._is_stopping = False

    def run(self, main: Callable[[PoolSettings], int]) -> int:
        """Keep a master for each pool, which runs ``main``; returns the worst exit code.

        A master that ends unasked after it was at work is replaced; if one ends before that, all pools are stopped.
        """
        mailbox = signals.Mailbox()
        while True:
            now = time.monotonic()
            self._reap(now)
            self._fork(main, now)
            self._look(now)
            self._show()
            if all(member.is_over for member in self._members):
                return max(member.code for member in self._members)
            self._handle(mailbox.next(self._sleep_time()))

    @property
    def _living(self) -> list[Member]:
        return [member for member in self._members if member.pid]

    def _reap(self, now: float) -> None:
        living = {member.pid: member for member in self._living}
        for pid, status in fork.reap(living):
            if member := living.get(pid):  # else an orphan, inherited as process 1
                member.has_ended(status, now, is_stopping=self._is_stopping)

    def _fork(self, main: Callable[[PoolSettings], int], now: float) -> None:
        for member in self._members:
            member.heed()
            if member.is_due(now) and not self._is_stopping:
                member.fork(partial(self._become_master, main), now)
            if member.has_failed_to_start and not self._is_stopping:
                self._handle(signal.SIGTERM)

    def _become_master(self, main: Callable[[PoolSettings], int], pool: PoolSettings) -> int:
        for member in self._members:
            member.close()
        proc.show(title(pool.name, State.STARTING, (), Totals()))  # so far it has the parent's
        return main(pool)

    def _look(self, now: float) -> None:
        for member in self._living:
            member.look(now)
        wanted = [member for member in self._members if not member.is_over]
        self._is_ready |= bool(wanted) and all(member.has_been_ready for member in wanted)

    def _handle(self, signum: int | None) -> None:
        if signum is None or signum == signal.SIGCHLD:
            return
        for member in self._members:
            member.send(signal.Signals(signum))
        if signum in signals.STOPS:
            self._is_stopping = True
            for member in self._members:
                member.give_up()

    def _sleep_time(self) -> float:
        has_due = len(self._living) < sum(not member.is_over for member in self._members)
        return PASS if self._herald or has_due else _TICK

    def _show(self) -> None:
        shown = f"queuepool: parent [{_shortened([one.settings.name for one in self._members])}] {self._words}"
        if shown != self._shown:
            self._shown = shown
            proc.show(shown)
        if self._herald:
            self._herald.notify(self._signs(), time.monotonic())

    @property
    def _words(self) -> str:
        return f"{'draining' if self._is_stopping else 'running'} masters={len(self._living)}"

    def _signs(self) -> Signs:
        found = [member.signs() for member in sorted(self._members, key=lambda member: not member.is_down)]
        return Signs(
            self._words_with([one.trouble for one in found]),
            is_ready=self._is_ready,
            is_reloading=any(one.is_reloading for one in found),
            is_stopping=self._is_stopping,
            until=max((one.until for one in found), default=0.0),
            is_live=all(member.is_live for member in self._members),
        )

    def _words_with(self, troubles: Sequence[str]) -> str:
        gives_up = "gives up, see the log: " if any(one.has_failed_to_start for one in self._members) else ""
        return "; ".join([gives_up + self._words, *filter(None, troubles)])


def _shortened(names: Sequence[str]) -> str:
    shown = ",".join(names)
    return shown if len(shown) <= _MAX_NAMES else shown[:_MAX_NAMES] + "..."
