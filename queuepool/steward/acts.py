"""The commands that a pool accepts from other hosts, and how it is seen that each has been carried out."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from queuepool.board.board import Board, State
from queuepool.board.cancelling import Came, Contrary, cancel_here, running_here
from queuepool.board.pauses import Pause, forget_pool_pause, note_pool_pause
from queuepool.board.record import as_count
from queuepool.board.requests import Change, Pin, ScaleOrder, fitted, is_carried_out, order_of, order_words, word_of
from queuepool.errors import QueuepoolError
from queuepool.steward.stacks import STACKS_TAKE, asked_on, stacks_text
from queuepool.stores.commands import MAX_WORDS, RemoteCommand
from queuepool.stores.journal import cancelled_job
from queuepool.unix import fork
from queuepool.unix.originals import start_thread
from queuepool.unix.signals import leave_signals_to_the_main_thread

#: seconds that a job which is cancelled may be given to end by itself
_LONGEST_GRACE = 3600.0
#: what it has done, in words; empty until it is done
Done = Callable[[], str]


class Errand(NamedTuple):
    """One command: for this pool, with these details, from ``by`` (``user@host``); ``pool``: its name."""

    board: Board
    details: Mapping[str, Any]
    by: str
    pool: str


class NotHere(QueuepoolError):
    """The pool does not run the job that is meant; another one may."""


class Act(NamedTuple):
    """``begin`` has the master do it. Both it and ``check`` raise ``QueuepoolError`` for what cannot be done."""

    begin: Callable[[Errand], Done]
    #: whether ``remote = safe`` allows it
    is_safe: Callable[[Mapping[str, Any]], bool] = lambda details: True
    #: changes nothing
    check: Callable[[Errand], object] = lambda errand: None
    #: to what of the pool it is done, in words for the journal; empty = to all of it
    about: Callable[[Mapping[str, Any]], str] = lambda details: ""
    #: what is done more exactly than its verb says, in words for the journal
    order: Callable[[Mapping[str, Any]], str] = lambda details: ""
    #: seconds that it may take, besides those that the master has
    takes: Callable[[Mapping[str, Any]], float] = lambda details: 0.0
    #: whether it has a line in the journal
    is_noted: bool = True

    def verb_of(self, command: RemoteCommand) -> str:
        """The verb as the journal has it."""
        return f"{command.verb} {self.order(command.details)}".rstrip()


def _pause(errand: Errand) -> Done:
    header = errand.board.header
    note_pool_pause(errand.board, Pause(time.time(), errand.by))
    _signal(errand.board, signal.SIGUSR2)
    return lambda: "paused: its workers start no more jobs" if header.signalled == State.PAUSED else ""


def _resume(errand: Errand) -> Done:
    header = errand.board.header
    forget_pool_pause(errand.board)
    _signal(errand.board, signal.SIGCONT)
    return lambda: "continues" if header.signalled != State.PAUSED else ""


def _reload(errand: Errand) -> Done:
    header, before = errand.board.header, errand.board.header.generation
    _signal(errand.board, signal.SIGHUP)
    return lambda: "its workers are being replaced, each after its job" if header.generation > before else ""


def _scale(errand: Errand) -> Done:
    header, order = errand.board.header, _fitted(errand)
    header.scale = word_of(order)

    def done() -> str:
        return f"has {header.target} worker{'' if header.target == 1 else 's'}" if is_carried_out(order, header) else ""

    return done


def _fitted(errand: Errand) -> ScaleOrder:
    try:
        return fitted(_order(errand.details), errand.board, _seconds(errand.details))
    except ValueError as error:
        raise QueuepoolError(f"it {error}") from None


def _order(details: Mapping[str, Any]) -> ScaleOrder | Change:
    """Raises ``ValueError``."""
    order = details.get("order", "")
    if not isinstance(order, str):  # whoever prints it may recurse as deeply as it is nested
        raise ValueError("takes its order as text")
    return order_of(order)


def _seconds(details: Mapping[str, Any]) -> int:
    """Raises ``ValueError``."""
    seconds = details.get("seconds", 0)
    if type(seconds) is not int or seconds < 0:
        raise ValueError("takes whole seconds")
    return as_count(seconds)


def _stop(errand: Errand) -> Done:
    header, is_now = errand.board.header, errand.details.get("now") is True
    _signal(errand.board, signal.SIGQUIT if is_now else signal.SIGTERM)
    words = f"stopping, its running jobs {'go back to their queues' if is_now else 'may finish'}"
    return lambda: words if header.stop_asked else ""


class _Wish(NamedTuple):
    """Which job is to end, and how."""

    job_id: str
    grace: float
    requeue: bool

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> _Wish:
        job_id, grace = details.get("id"), details.get("grace", 0.0)
        if not isinstance(job_id, str):
            raise QueuepoolError("a job's id is a text")
        if not isinstance(grace, (int, float)) or not 0.0 <= grace <= _LONGEST_GRACE:
            raise QueuepoolError(f"a grace is from 0 to {_LONGEST_GRACE:g} s")
        return cls(job_id, float(grace), details.get("requeue") is True)

    @property
    def words(self) -> str:
        return cancelled_job(self.job_id, requeue=self.requeue)


def _runs_here(errand: Errand) -> None:
    if next(running_here(errand.board, _Wish.of(errand.details).job_id), None) is None:
        raise NotHere("it runs no job with this id")


def _cancel(errand: Errand) -> Done:
    wish = _Wish.of(errand.details)
    ordered = cancel_here(errand.board, wish.job_id, by=errand.by, grace=wish.grace, requeue=wish.requeue)
    if isinstance(ordered, Contrary):
        raise QueuepoolError(str(ordered))
    if ordered is None:
        _runs_here(errand)
        raise QueuepoolError("another order is being given at this moment: send it again")
    words = {
        Came.OF_IT: f"job {'is back in its queue' if wish.requeue else 'cancelled'}",
        Came.TOO_LATE: "job is over already",
    }
    return lambda: words[came] if (came := ordered.came) else ""


def _subject(errand: Errand) -> str:
    """What a stack is asked of."""
    subject = errand.details.get("subject")
    if not isinstance(subject, str):
        raise QueuepoolError("a stack is of an id, a pid or a pool")
    if next(asked_on(errand.board, errand.pool, subject), None) is None:
        raise NotHere("nothing runs under this id, pid or pool")
    return subject


def _stack(errand: Errand) -> Done:
    """In a thread: a worker in C code answers late, and one that stands still not at all."""
    subject, room, told = _subject(errand), errand.details.get("room"), list[str]()
    about = errand.board, errand.pool, subject, room if isinstance(room, int) else MAX_WORDS

    def ask() -> None:
        leave_signals_to_the_main_thread()
        words = ""
        try:
            words = stacks_text(*about)
        finally:
            told.append(words or "its workers could not be asked")

    start_thread(ask, ())
    return lambda: told[0] if told else ""


def _keeps_a_worker(details: Mapping[str, Any]) -> bool:
    """Whether it cannot leave the pool without one; fewer workers than now may be none."""
    try:
        order = _order(details)
    except ValueError:
        return True  # it is refused in any case
    return order != Pin(0) and not (isinstance(order, Change) and order.workers < 0)


def _never(details: Mapping[str, Any]) -> bool:
    return False


#: by verb
ACTS: Mapping[str, Act] = MappingProxyType({
    "pause": Act(_pause),
    "continue": Act(_resume),
    "restart": Act(_reload),
    "reload": Act(_reload),
    "scale": Act(
        _scale,
        _keeps_a_worker,
        check=_fitted,
        order=lambda details: order_words(str(details.get("order")), _seconds(details)),
    ),
    "cancel": Act(
        _cancel,
        check=_runs_here,
        about=lambda details: _Wish.of(details).words,
        takes=lambda details: _Wish.of(details).grace,
    ),
    "stack": Act(_stack, check=_subject, takes=lambda details: STACKS_TAKE, is_noted=False),
    "drain": Act(_stop, _never),
    "stop": Act(_stop, _never),
})  # fmt: skip


def _signal(board: Board, signum: signal.Signals) -> None:
    """Signal the master, if it is still our parent."""
    fork.signal_other(board.name.pid, signum, lambda pid: os.getppid() == pid)
