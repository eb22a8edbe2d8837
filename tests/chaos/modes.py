"""What jobs do to their workers. A mode takes the attempt, counted from 1; ``False``: it did not finish."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil

from queuepool import current
from tests.chaos.boards import ON_BOARDS
from tests.chaos.kept_steps import stepped
from tests.chaos.ledger import Ledger
from tests.chaos.overruns import OVERRUN


def over(attempt: int, ledger: Ledger) -> None:
    """This attempt has no more effects: its worker dies now, or lets the job go."""
    ledger.attempt("die", current().id, attempt)


def nap(attempt: int, ledger: Ledger, seconds: float) -> None:
    time.sleep(seconds)


def spin(attempt: int, ledger: Ledger, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def dies(how: Callable[[], object]) -> Callable[[int, Ledger], None]:
    """The worker is gone with the first attempt."""

    def mode(attempt: int, ledger: Ledger) -> None:
        if attempt == 1:
            over(attempt, ledger)
            how()

    return mode


def overruns(how: Callable[[], object]) -> Callable[[int, Ledger], None]:
    """The first attempt never ends by itself."""

    def mode(attempt: int, ledger: Ledger) -> None:
        if attempt == 1:
            how()

    return mode


def close_every_fd(attempt: int, ledger: Ledger) -> None:
    if attempt == 1:
        os.closerange(3, 4096)
        ledger.open()


def fork_and_return_twice(attempt: int, ledger: Ledger) -> None:
    if attempt == 1:
        os.fork()


def leave_a_child(attempt: int, ledger: Ledger, seconds: float) -> bool:
    """Killed with a child of its own group at work."""
    if attempt == 1:
        subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds}) # child"])
        over(attempt, ledger)
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def leave_a_session(attempt: int, ledger: Ledger, seconds: float) -> bool:
    """As before, and the child has left for a session of its own."""
    if attempt == 1:
        code = f"import time; time.sleep({seconds}) # session"
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        over(attempt, ledger)
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def fork_many(attempt: int, ledger: Ledger, children: float) -> None:
    """A small fork bomb: this many sleeping children, in the worker's process group."""
    for _ in range(int(children) if attempt == 1 else 0):
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)


def eat(attempt: int, ledger: Ledger) -> None:
    """All the memory that it may have; the limit is taken away again."""
    if attempt > 1:
        return
    old = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + (48 << 20), old[1]))
    hoard = []
    try:
        while True:
            hoard.append(bytearray(1 << 20))
    finally:
        hoard.clear()
        resource.setrlimit(resource.RLIMIT_AS, old)
        over(attempt, ledger)


def raise_once(attempt: int, ledger: Ledger) -> None:
    if attempt == 1:
        over(attempt, ledger)
        raise ValueError("as asked")


def exit_once(attempt: int, ledger: Ledger) -> None:
    if attempt == 1:
        over(attempt, ledger)
        sys.exit("not my business")


def release_once(attempt: int, ledger: Ledger, delay: float) -> bool:
    if attempt == 1:
        over(attempt, ledger)
        current().release(delay)
    return attempt > 1


def fail(attempt: int, ledger: Ledger) -> bool:
    current().fail("by hand")
    return False


MODES: dict[str, Callable[..., object]] = {
    **{name: overruns(how) for name, how in ON_BOARDS.items()},
    "nap": nap,
    "spin": spin,
    "segfault": dies(lambda: ctypes.string_at(0)),
    "abort": dies(os.abort),
    "exit": dies(lambda: os._exit(0)),
    "kill": dies(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    **{name: overruns(how) for name, how in OVERRUN.items()},
    "close_every_fd": close_every_fd,
    "fork_and_return_twice": fork_and_return_twice,
    "leave_a_child": leave_a_child,
    "leave_a_session": leave_a_session,
    "fork_many": fork_many,
    "eat": eat,
    "raise": raise_once,
    "sys_exit": exit_once,
    "release": release_once,
    "fail": fail,
    "stepped": stepped,
}
