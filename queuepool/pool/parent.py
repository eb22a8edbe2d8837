"""The parent of several pools: keeps a master alive for each, forwards signals, and speaks to the service manager.

For each of its pools (``SupervisedPool``) it knows the master, when the next one is due after a death, and the
pool's health.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from queuepool import log
from queuepool.board import boot_report
from queuepool.board.board import Board, BoardName, State
from queuepool.board.fields import Totals
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import title
from queuepool.config.settings import PoolSettings
from queuepool.master.respawn import RespawnDelay
from queuepool.master.service_manager import PASS, Herald, Signs, SignsOfPool
from queuepool.unix import fork, proc, signals
from queuepool.unix.exit_codes import FAILED, OK
from queuepool.unix.signals import STOPS

#: seconds between two looks at the masters when no service manager waits for pings
_TICK = 1.0
#: most characters of pool names in the title
_MAX_NAMES = 100
#: age of a master's beat in seconds at which it hangs
_MAX_AGE = 5.0
#: seconds within which a new master has a board; before that it has no beat
_FIRST_BEAT = 120.0
#: seconds for which a master must have been ready so that earlier deaths no longer count
_STEADY = 10.0
_UNKNOWN = Signs("", is_ready=False)
_log = logging.getLogger("queuepool")


class Parent:
    """Runs until every pool has ended."""

    def __init__(self, pools: Sequence[PoolSettings], herald: Herald) -> None:
        self._members = [SupervisedPool(pool) for pool in pools]
        self._herald = herald
        self._shown = ""
        #: whether all pools have become ready, once
        self._is_ready = False
        self._is_stopping = False

    def run(self, main: Callable[[PoolSettings], int]) -> int:
        """Keep a master for each pool, which runs ``main``; returns the worst exit code.

        A master that ends unasked after it was ready is replaced; if one ends before that, all pools are stopped.
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
    def _living(self) -> list[SupervisedPool]:
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
        has_new = any(member.has_no_board for member in self._members if not member.is_over)
        return PASS if self._herald or has_new else _TICK

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


class SupervisedPool:
    """One pool: it has a master (``pid``), or waits for the time to fork one, or has ended for good (``is_over``)."""

    def __init__(self, settings: PoolSettings) -> None:
        self.settings = settings
        self._path = RuntimeDir(settings).path
        boot_report.forget_retried(self._path)  # of a parent that was killed
        self._backoff = RespawnDelay()
        self._board: Board | None = None
        self._signs_of_board: SignsOfPool | None = None
        self._forked_at = self._ready_at = 0.0
        self._is_ready = self._is_paused = self._is_renewed = False
        #: of its living master, which is not yet reaped; 0 = none lives
        self.pid = 0
        self._name = BoardName(0, 0)
        #: why no master of it is ready, after one was; empty if one is, or if the last one left as it was asked to
        self._cause = ""
        #: whether one of its masters has been ready since the parent's start
        self.has_been_ready = False
        self.is_over = False
        #: whether its first master ended before it was ready
        self.has_failed_to_start = False
        #: the exit code that it adds to the parent's
        self.code = OK
        #: whether its master's loop has come round lately; a dead master does not count as hanging
        self.is_live = True

    @property
    def is_down(self) -> bool:
        """Whether it lacks a ready master that it should have, or lacked one when it ended."""
        return bool(self._cause)

    @property
    def has_no_board(self) -> bool:
        """Whether its next master, or that one's board, is still to come.

        If the master fails to boot, its board alone has what was asked of it.
        """
        return self._board is None

    def is_due(self, now: float) -> bool:
        """Whether a master is to be forked now."""
        return not (self.pid or self.is_over) and self._backoff.is_over(now)

    def fork(self, main: Callable[[PoolSettings], int], now: float) -> None:
        """Fork a master; paused if the last one was."""
        try:
            self.pid = fork.spawn(lambda: main(self.settings))
        except OSError as error:
            self._has_failed(f"cannot fork: {error.strerror}", FAILED, now)
            return
        self._forked_at, self.is_live = now, True
        self._name = BoardName(self.pid, proc.start_time_if_readable(self.pid), proc.boot(), proc.namespace())
        if self._is_paused:
            self.send(signal.SIGUSR2)

    def send(self, signum: signal.Signals) -> None:
        """Send it to the master. While there is none, a HUP has the next one forked at once, as the code may be new."""
        if signum in (signal.SIGUSR2, signal.SIGCONT):
            self._is_paused = signum == signal.SIGUSR2
        if signum == signal.SIGHUP and not (self._is_ready or self.is_over):
            self._is_renewed = True
            self._backoff = RespawnDelay()
        if self.pid:
            fork.send_signal(self.pid, signum)

    def give_up(self) -> None:
        """Fork no master any more."""
        self.is_over |= not self.pid
        boot_report.forget_retried(self._path)

    def heed(self) -> None:
        """Take the signal that a command has left for a pool that is down: there was no master to send it to."""
        signum = boot_report.taken_signal(self._path) if self.is_down and not self.is_over else None
        if signum in STOPS and not self.pid:
            self._say(logging.WARNING, "the pool was stopped: it is not retried")
            self.give_up()
        elif signum:
            self.send(signum)

    def look(self, now: float) -> None:
        """Look at the board of the living master."""
        self._note_ready(now)
        if self._is_ready and now >= self._ready_at + _STEADY:
            self._backoff.succeeded()
        was_live, self.is_live = self.is_live, self._has_beat(now)
        if was_live and not self.is_live:
            self._say(logging.ERROR, "master pid=%d hangs: its loop makes no progress", self.pid)
        elif self.is_live and not was_live:
            self._say(logging.WARNING, "master pid=%d no longer hangs", self.pid)

    def has_ended(self, status: int, now: float, *, is_stopping: bool) -> None:
        """Its master has been reaped, with this wait status. Unless it was asked to end, another one will be due."""
        code, cause = os.waitstatus_to_exitcode(status), proc.cause_of(status)
        self._note_ready(now)  # it may have become ready since the last look
        self._note_pause()
        if is_stopping or self._was_asked(code):
            self._end(code, cause)
        else:
            self._has_failed(f"master pid={self.pid} {self._what}: {cause}", FAILED if code < 0 else code, now)
        self._forget()

    def close(self) -> None:
        """Close the board, in a child of the parent: only the parent looks at it."""
        if self._board:
            self._board.memory.close()
        self._board = self._signs_of_board = None

    def signs(self) -> Signs:
        """The signs of the pool. Before it has a board, and while it has no master, little is known of it."""
        signs = self._signs_of_board.now() if self._signs_of_board else _UNKNOWN
        trouble = self._trouble(signs.trouble)
        return signs._replace(is_reloading=self._is_renewed or signs.is_reloading, trouble=trouble)

    def _trouble(self, found: str) -> str:
        """The worst of what is wrong with the pool; ``found`` is what its board shows."""
        if self._cause:
            return f"pool {self.settings.name} {'starts again' if self.pid else 'is down'}: {self._cause}"
        trouble = found if self.is_live else "its master hangs"
        return f"pool {self.settings.name}: {trouble}" if trouble else ""

    def _open(self) -> None:
        if self._board is None:
            with suppress(OSError, ValueError):  # there is none yet, or not of this version
                self._board = Board.open(self._path / str(self._name))
                self._signs_of_board = SignsOfPool(self.settings, self._board)

    def _has_beat(self, now: float) -> bool:
        if self._board is None or not self._board.header.beat:  # as on a new board, before the first beat
            return now < self._forked_at + _FIRST_BEAT
        return now < self._board.header.beat + _MAX_AGE

    def _note_ready(self, now: float) -> None:
        self._open()
        if self._board and not self._is_ready and self._board.header.ready:
            self._has_come_to_work(now)

    def _has_come_to_work(self, now: float) -> None:
        self._is_ready, self._ready_at, self._is_renewed = True, now, False
        if self._cause:
            self._say(logging.WARNING, "master pid=%d has become ready: the pool is back", self.pid)
        self.has_been_ready, self._cause, self.code = True, "", OK
        boot_report.forget_retried(self._path)

    def _note_pause(self) -> None:
        signalled = self._board.header.signalled if self._board else 0
        self._is_paused = {State.RUNNING: False, State.PAUSED: True}.get(State(signalled), self._is_paused)

    def _was_asked(self, code: int) -> bool:
        """Whether its end was asked for: with 0 it has drained; after a stop it is not replaced, whatever ended it.

        One that gives up drains as well, but was not asked to.
        """
        return code == OK or (self._board is not None and self._board.header.stop_asked == 1)

    @property
    def _what(self) -> str:
        return "died" if self._is_ready else "never became ready"

    def _end(self, code: int, cause: str) -> None:
        self.is_over = True
        self.code = max(self.code, FAILED if code < 0 else code)  # one that was down and is not back has failed
        if code != OK:
            self._cause = f"master pid={self.pid} died while it was being stopped: {cause}"
            self._say(logging.ERROR, "%s; it is not replaced", self._cause)

    def _has_failed(self, cause: str, code: int, now: float) -> None:
        self._cause, self.code = cause, code
        if self.has_been_ready:
            self._say(logging.ERROR, "%s; next try in %.1fs", cause, self._backoff.failed(now))
            boot_report.note_retried(self._path, cause)
        else:
            self.is_over = self.has_failed_to_start = True
            self._say(logging.CRITICAL, "%s: the start has failed, every pool of the file is stopped", cause)

    def _forget(self) -> None:
        self.close()
        self.pid, self._is_ready, self.is_live, self._is_renewed = 0, False, True, False

    def _say(self, level: int, words: str, *facts: object) -> None:
        log.setup(self.settings, "parent", write_timeout=0.0)  # each pool may have its own log
        _log.log(level, words, *facts)
