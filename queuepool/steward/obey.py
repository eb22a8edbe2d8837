"""Carry out what operators on other hosts have sent to this pool, once, and answer them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from queuepool.board.board import Board
from queuepool.config.settings import PoolSettings
from queuepool.errors import QueuepoolError, StoreDenied, StoreDown, StoreError
from queuepool.events import CommandRefused
from queuepool.steward.acts import ACTS, Done, Errand, NotHere
from queuepool.steward.side_stores import Emitter
from queuepool.stores.commands import LASTS, CommandOutcome, CommandPost, NoCommand, RemoteCommand
from queuepool.stores.control import PERIOD
from queuepool.stores.journal import Journal

#: seconds in which the master should do it, and between looks whether it has: first, and later
_WITHIN, _TICK, _LATER_TICK = 5.0, 0.05, 0.5
#: errors of what a command says: its details come from another host, and may be anything
_WRONG = (QueuepoolError, OSError, ValueError, OverflowError)
#: why a command is refused that its operator no longer waits for
_OVER = "its time is over"
#: seconds by which a command may be ahead of the clock that is read after it: a store's second server
_AHEAD = 2.0


class _Open(NamedTuple):
    """A command that the master has been told, and is not answered yet."""

    command: RemoteCommand
    subject: str
    done: Done
    #: monotonic
    told: float
    until: float


class _StoreClock:
    """The store's clock as it was read once, and as it goes on: no later command waits for another answer."""

    def __init__(self, read: Callable[[], float]) -> None:
        self._ahead = read() - time.monotonic()

    def now(self) -> float:
        return self._ahead + time.monotonic()


class Obey:
    """Looks for commands when the control keys say that there is news.

    ``clock``: the store's, in Unix seconds. ``host``: as the pool's notice names it.
    """

    def __init__(
        self,
        pool: PoolSettings,
        host: str,
        board: Board,
        post: CommandPost,
        journal: Journal,
        clock: Callable[[], float],
        news: Callable[[], str | None],
        emitter: Emitter,
    ) -> None:
        self._pool = pool.name
        self._allows = pool.remote
        self._subject = f"pool {pool.name} on {host}"
        self._board = board
        self._post = post
        self._journal = journal
        self._clock = clock
        self._news = news
        self._emitter = emitter
        self._known: str | None = None
        #: since when this steward looks, by the store's clock; ``None`` = not yet
        self._began: float | None = None
        #: until when each command could be replayed, by its id
        self._seen: dict[str, float] = {}
        self._open: list[_Open] = []

    def run(self, now: float) -> float:
        if self._began is None:
            self._began = self._clock()
        if (news := self._news()) != self._known:
            self._look(now)
            self._known = news
        self._open = [one for one in self._open if not self._is_answered(one, now)]
        if not self._open:
            return PERIOD
        return _TICK if any(now < one.told + _WITHIN for one in self._open) else _LATER_TICK

    def finish(self) -> None:
        """Answer what the master has done, at the end of the steward: a stop ends it, too."""
        self._open = [one for one in self._open if not self._is_answered(one, now=0.0)]

    def _look(self, now: float) -> None:
        clock, began, unread = None, self._began or 0.0, list[NoCommand]()
        for command in self._post.take(self._board.name.instance):
            if isinstance(command, NoCommand):
                unread.append(command)
                continue
            clock = clock or _StoreClock(self._clock)
            if problem := self._problem_of(command, clock.now(), began):
                self._refuse(command, problem)
            else:
                self._begin(command, clock, now)
        if unread:
            self._refuse_unread(unread)
        if clock:
            self._seen = {id_: until for id_, until in self._seen.items() if until > clock.now()}

    def _problem_of(self, command: RemoteCommand, clock: float, began: float) -> str:
        """Why the command is not carried out; empty if it is."""
        if command.to != self._board.name.instance:
            return "it is for another pool"
        if _is_over(command, clock):
            return _OVER
        if command.id in self._seen:
            return "it was carried out before"
        self._seen[command.id] = command.at + LASTS
        if command.at < began:  # the last steward may have carried it out
            return "it was sent before the pool's steward started"
        act = ACTS.get(command.verb)
        if act is None:
            return f"its version knows no {command.verb}"
        if self._allows == "all" or (self._allows == "safe" and act.is_safe(command.details)):
            return ""
        return f"its remote = {self._allows} does not allow {command.verb}"

    def _begin(self, command: RemoteCommand, clock: _StoreClock, now: float) -> None:
        """Write it into the journal, then do it: whatever dies in between, nothing is done without a line."""
        act, errand = ACTS[command.verb], Errand(self._board, command.details, command.by, self._pool)
        try:
            act.check(errand)
        except _WRONG as error:
            self._decline(command, error)
            return
        about = act.about(command.details)
        subject = f"{about} of {self._subject}" if about else self._subject
        has_line = not act.is_noted or self._has_line(command, subject)
        if has_line and (done := self._told(command, errand, subject, clock)):
            self._open.append(_Open(command, subject, done, now, now + _WITHIN + act.takes(command.details)))

    def _has_line(self, command: RemoteCommand, subject: str) -> bool:
        """Write the line; ``False``: it is refused instead."""
        try:
            self._write(command, subject)
        except StoreError as error:
            self._refuse(command, f"the journal cannot be written, so nothing was done: {error}")
            if isinstance(error, StoreDown) and not isinstance(error, StoreDenied):
                raise  # the others would wait for the same silent store
            return False
        return True

    def _told(self, command: RemoteCommand, errand: Errand, subject: str, clock: _StoreClock) -> Done | None:
        """Have it done; ``None``: it is refused."""
        try:
            if _is_over(command, clock.now()):  # the store was slow, and its operator no longer waits for it
                raise QueuepoolError(_OVER)
            return ACTS[command.verb].begin(errand)
        except _WRONG as error:
            self._decline(command, error)
            self._note(command, f"{subject}: nothing was done: {error}")
            return None

    def _is_answered(self, one: _Open, now: float) -> bool:
        if words := one.done():
            self._answer(one.command, CommandOutcome.DONE, words)
        elif now >= one.until:
            words = f"its master was told {now - one.told:.0f} s ago and has not done it: it may do so yet"
            self._answer(one.command, CommandOutcome.UNKNOWN, words)
            self._note(one.command, f"{one.subject}: not known whether it was done")
        else:
            return False
        return True

    def _note(self, command: RemoteCommand, subject: str) -> None:
        """What came of a line that is there already."""
        if not ACTS[command.verb].is_noted:
            return
        with suppress(StoreError):
            self._write(command, subject)

    def _write(self, command: RemoteCommand, subject: str) -> None:
        self._journal.write(command.by, ACTS[command.verb].verb_of(command), subject)

    def _refuse_unread(self, found: Sequence[NoCommand]) -> None:
        """Refuse what is not a command, or not signed as required: anyone may have sent it.

        In one line and one answer for all, as each answer is a round trip.
        """
        self._emitter.emit(CommandRefused("", "", _problem_with(found[0])))
        for one in found:
            if one.command:
                self._answer(one.command, CommandOutcome.REFUSED, _problem_with(one))
                return

    def _decline(self, command: RemoteCommand, error: Exception) -> None:
        """Answer that it was not done. Where a job is not, there is nothing to warn of: it is asked of all pools."""
        if isinstance(error, NotHere):
            self._answer(command, CommandOutcome.NOT_HERE, str(error))
        else:
            self._refuse(command, str(error))

    def _refuse(self, command: RemoteCommand, problem: str) -> None:
        self._emitter.emit(CommandRefused(command.verb, command.by, problem))
        self._answer(command, CommandOutcome.REFUSED, problem)

    def _answer(self, command: RemoteCommand, outcome: CommandOutcome, words: str) -> None:
        with suppress(StoreError):  # the operator is told that no answer came
            self._post.answer(command, outcome, words)


def _is_over(command: RemoteCommand, clock: float) -> bool:
    return not command.at - _AHEAD <= clock <= command.at + LASTS


def _problem_with(found: NoCommand) -> str:
    return f"it is not signed as it must be: {found.reason}" if found.command else f"no command: {found.reason}"
