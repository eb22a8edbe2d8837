"""The one place that forks, kills and reaps."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Container, Iterator
from contextlib import suppress

from queuepool.unix import at_fork, proc
from queuepool.unix.exit_codes import BROKEN
from queuepool.unix.originals import sleep, waitpid
from queuepool.unix.signals import default_actions

#: seconds between two checks whether a process has been reparented
_MOMENT = 0.001


def spawn(main: Callable[[], int]) -> int:
    """Fork a child that runs ``main`` and exits with its code; returns the pid. Raises ``OSError``.

    The child leads its own process group, so that a kill includes a job's subprocesses, and gets SIGTERM when
    its parent dies. It keeps the parent's blocked signals until it has handlers for them.
    """
    parent = os.getpid()
    pid = at_fork.fork()
    if pid == 0:
        _run_child(main, parent)
    with suppress(OSError):  # both sides do it, in either order: the group must exist before the first kill
        os.setpgid(pid, pid)
    return pid


def spawn_for_parent(main: Callable[[], int], parent: int, note: Callable[[int], None]) -> None:
    """Fork a child that is reparented to our own ``parent``, as if that had spawned it. Raises ``OSError``.

    An intermediate process forks the child, calls ``note`` with its pid and exits: the kernel gives orphans to the
    next subreaper above. Unlike a child of ``spawn``, it keeps our signal actions.
    """
    _flush()
    intermediate = at_fork.fork()
    if intermediate == 0:
        _run_intermediate(main, parent, note)
    try:
        code = os.waitstatus_to_exitcode(waitpid(intermediate, 0)[1])
    except ChildProcessError:
        return  # the user's modules ignore SIGCHLD, or have reaped it
    if code > 0:
        raise OSError(code, os.strerror(code))


def reap(known: Container[int]) -> Iterator[tuple[int, int]]:
    """``(pid, wait status)`` of every child that has ended; never waits for one.

    The rest of a ``known`` child's process group is killed.
    """
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        # Until it is reaped, no other process can have its pid, and no other group its number.
        if ended.si_pid in known:
            _signal_group(ended.si_pid, signal.SIGKILL)
        yield waitpid(ended.si_pid, 0)


def is_child(pid: int) -> bool:
    """Whether this is a child of ours, dead or alive, that is not yet reaped."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (OSError, OverflowError):
        return False
    return True


def kill(pid: int) -> None:
    """Kill a process and its whole group, even if the process has left the group. Only for a child not yet reaped.

    Raises ``ValueError`` for a pid of 1 or less.
    """
    _signal_group(pid, signal.SIGKILL)
    send_signal(pid, signal.SIGKILL)


def kill_other(pid: int, is_same: Callable[[int], bool]) -> None:
    """As ``kill``, for a process that is not our child: only if ``is_same(pid)`` says that it is the one meant."""
    with suppress(PermissionError):  # another user's
        _signal_other(pid, signal.SIGKILL, is_same, group=True)


def signal_other(pid: int, signum: signal.Signals, is_same: Callable[[int], bool]) -> None:
    """As ``send_signal``, for a process that is not our child: only if ``is_same(pid)`` says that it is the one meant.

    Raises ``PermissionError`` for another user's, ``ValueError`` for a pid of 0 or less, and what ``is_same`` raises.
    """
    _check(pid, above=0)
    _signal_other(pid, signum, is_same)


def signal_thread_of_other(pid: int, thread: int, signum: signal.Signals, is_same: Callable[[int], bool]) -> None:
    """As ``signal_other``, but to one thread of the process; only for a signal that is ignored by default.

    The thread is given by its number alone: most kernels offer no handle of a thread.
    """
    import ctypes  # imported here: few commands need it

    _check(pid, above=0)
    libc = ctypes.CDLL(None, use_errno=True)
    if is_same(pid) and hasattr(libc, "tgkill"):
        libc.tgkill(pid, thread, int(signum))


def wake_parent(parent: int) -> None:
    """Wake the master, our parent, to look at the board. Does nothing once it has died and we have another parent."""
    with suppress(OSError, ValueError):
        signal_other(parent, signal.SIGUSR1, lambda pid: pid == os.getppid())


def wake_self() -> None:
    """End the wait of this process's main thread; called by another thread of it."""
    os.kill(os.getpid(), signal.SIGUSR1)


def send_signal(pid: int, signum: signal.Signals) -> None:
    """Send a signal to one process, a child that is not yet reaped.

    Raises ``ValueError`` for a pid of 0 or less.
    """
    _check(pid, above=0)
    with suppress(ProcessLookupError):  # it has ended; the next reap finds it
        os.kill(pid, signum)


def _check(pid: int, above: int) -> None:
    # To the kernel, a pid of 0 or less means a group or every process; the group of 1 is the whole container.
    if pid <= above:
        raise ValueError(f"refusing to signal pid {pid}")


def _signal_other(pid: int, signum: signal.Signals, is_same: Callable[[int], bool], *, group: bool = False) -> None:
    with suppress(ProcessLookupError):  # it has ended
        handle = _handle_of(pid)
        try:
            # While we hold the handle, the check cannot be fooled by a later process with the same pid.
            if not is_same(pid):
                return
            if group:
                _signal_group(pid, signum)
            if handle is None:
                os.kill(pid, signum)
            else:
                signal.pidfd_send_signal(handle, signum)
        finally:
            if handle is not None:
                os.close(handle)


def _handle_of(pid: int) -> int | None:
    """``None`` where the system offers none. Raises ``ProcessLookupError``."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (OSError, AttributeError):  # no free descriptor, or a kernel before 5.3, or not Linux
        return None


def _signal_group(pid: int, signum: signal.Signals) -> None:
    _check(pid, above=1)
    with suppress(ProcessLookupError, PermissionError):  # it leads no group, or the group is another user's
        os.killpg(pid, signum)


def _run_intermediate(main: Callable[[], int], parent: int, note: Callable[[int], None]) -> None:
    """The intermediate process: exits with 0, or with the error's number."""
    code, own = BROKEN, os.getpid()
    try:
        pid = at_fork.fork()
        if pid == 0:
            while os.getppid() == own:
                sleep(_MOMENT)
            _run_child(main, parent, fresh=False)
        note(pid)
        code = 0
    except OSError as error:
        code = error.errno or BROKEN
    finally:
        os._exit(code)


def _run_child(main: Callable[[], int], parent: int, *, fresh: bool = True) -> None:
    code = BROKEN
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        if fresh:
            default_actions()
        _close_input()
        if proc.end_with_parent(parent, signal.SIGTERM):
            code = main()
    except BaseException:  # noqa: BLE001 - nothing may reach the parent's frames below
        traceback.print_exc()
    finally:
        _flush()
        # Never return or sys.exit: the parent's exit handlers and buffers are not the child's.
        os._exit(code)


def _flush() -> None:
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()


def _close_input() -> None:
    # The terminal would stop a background process group that reads from it.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    if null:
        os.close(null)
