"""What the kernel knows of processes: who they are, how large they are, what they are called."""

from __future__ import annotations

import os
import signal
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setproctitle import setproctitle

if TYPE_CHECKING:
    import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_MB = 1024 * 1024


@cache
def library() -> Any:
    """psutil. It is slow to import, and `status` does without; a pool calls this before it forks."""
    import psutil

    return psutil


def born_if_seen(pid: int) -> int:
    """``born``; also 0 when nobody can look, as without a free descriptor: for what is only noted."""
    try:
        return born(pid)
    except OSError:
        return 0


def born(pid: int) -> int:
    """When this process began, in the kernel's ticks; 0 when there is none. With its pid it names it for good."""
    try:
        return int(_stat(pid)[19])
    except FileNotFoundError:
        pass  # not a Linux, or no such process: the library knows
    except ProcessLookupError:
        return 0
    try:
        return int(library().Process(pid).create_time())
    except library().NoSuchProcess:
        return 0


def is_alive(pid: int, birth: int) -> bool:
    """Whether that very process still runs, not a later one with its pid."""
    return pid > 0 and birth != 0 and born(pid) == birth and not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        return _stat(pid)[0] == b"Z"
    except ProcessLookupError:
        return True
    except FileNotFoundError:
        pass  # as above
    try:
        return bool(library().Process(pid).status() == library().STATUS_ZOMBIE)
    except library().NoSuchProcess:
        return True


def _stat(pid: int) -> list[bytes]:
    """What the kernel says of it in a line, from its state on. Raises ``OSError``."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def resident_mb(pid: int) -> float:
    """Current resident memory in MB (not the peak); 0.0 when the process is gone, or nobody can look."""
    try:
        return float((_self(pid) if pid == os.getpid() else library().Process(pid)).memory_info().rss) / _MB
    except (library().Error, OSError):
        return 0.0


@lru_cache(maxsize=1)
def _self(pid: int) -> psutil.Process:
    """Kept: to make one is to read most of what the kernel has to tell."""
    return library().Process(pid)  # type: ignore[no-any-return]


def children() -> list[int]:
    """Our own, dead and not yet reaped ones too; of a process of one thread. None when nobody can look."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except FileNotFoundError:
        return [child.pid for child in library().Process().children()]
    except OSError:
        return []  # we are out of descriptors


def everybody() -> list[int]:
    """Every process that this system shows us."""
    return list(library().pids())


def environment(pid: int) -> dict[str, str]:
    """What it was started with; empty when it is gone, or not ours to look at."""
    try:
        return dict(library().Process(pid).environ())
    except (library().Error, OSError):
        return {}


def group(pid: int) -> int:
    """Its process group; -1 when it is gone."""
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def adopt_orphans() -> bool:
    """Be the parent of whoever loses theirs below us; ``False`` where that cannot be (Linux can)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent: int, signum: signal.Signals) -> bool:
    """Have the kernel send ``signum`` when the parent dies; ``False`` when it has died already."""
    _prctl(_PR_SET_PDEATHSIG, int(signum))
    # It may have died before the call; compared with the recorded pid because a subreaper is not 1.
    return os.getppid() == parent


def _prctl(option: int, value: int) -> bool:
    """Linux's; ``False`` where it was refused, or where there is none."""
    import ctypes  # here, as psutil: who forks has called this before

    libc = ctypes.CDLL(None, use_errno=True)
    return hasattr(libc, "prctl") and libc.prctl(option, value, 0, 0, 0) == 0


def show(title: str) -> None:
    """What ``ps`` shows: one line of printable ASCII, at most 200 bytes."""
    if not (title.isascii() and title.isprintable()):
        title = "".join(char if " " <= char <= "~" else "?" for char in title)
    setproctitle(title[:200])


def plausible(status: int | None) -> int | None:
    """``None`` for what can be no wait status."""
    try:
        os.waitstatus_to_exitcode(status or 0)
    except (ValueError, OverflowError):
        return None
    return status


def cause_of(status: int) -> str:
    """A wait status in words: ``signal 9 (SIGKILL)`` or ``exit code 3``."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
