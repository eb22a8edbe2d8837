"""What the kernel knows of processes: who they are, how large they are, what they are called."""

from __future__ import annotations

import ctypes
import os
import signal
from functools import lru_cache
from pathlib import Path

import psutil
from setproctitle import setproctitle

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_MB = 1024 * 1024


def born_if_seen(pid: int) -> int:
    """``born``; also 0 when nobody can look, as without a free descriptor: for what is only noted."""
    try:
        return born(pid)
    except OSError:
        return 0


def born(pid: int) -> int:
    """When this process began, in the kernel's ticks; 0 when there is none. With its pid it names it for good."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except FileNotFoundError:
        pass  # not a Linux, or no such process: the library knows
    except ProcessLookupError:
        return 0
    try:
        return int(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return 0


def is_alive(pid: int, birth: int) -> bool:
    """Whether that very process still runs, not a later one with its pid."""
    return pid > 0 and birth != 0 and born(pid) == birth and not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def resident_mb(pid: int) -> float:
    """Current resident memory in MB (not the peak); 0.0 when the process is gone, or nobody can look."""
    try:
        return float((_self(pid) if pid == os.getpid() else psutil.Process(pid)).memory_info().rss) / _MB
    except (psutil.Error, OSError):
        return 0.0


@lru_cache(maxsize=1)
def _self(pid: int) -> psutil.Process:
    """Kept: to make one is to read most of what the kernel has to tell."""
    return psutil.Process(pid)


def children() -> list[int]:
    """Our own, dead and not yet reaped ones too; of a process of one thread. None when nobody can look."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except FileNotFoundError:
        return [child.pid for child in psutil.Process().children()]
    except OSError:
        return []  # we are out of descriptors


def everybody() -> list[int]:
    """Every process that this system shows us."""
    return psutil.pids()


def environment(pid: int) -> dict[str, str]:
    """What it was started with; empty when it is gone, or not ours to look at."""
    try:
        return dict(psutil.Process(pid).environ())
    except (psutil.Error, OSError):
        return {}


def group(pid: int) -> int:
    """Its process group; -1 when it is gone."""
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def adopt_orphans() -> bool:
    """Be the parent of whoever loses theirs below us; ``False`` where that cannot be (Linux can)."""
    libc = ctypes.CDLL(None, use_errno=True)
    return hasattr(libc, "prctl") and libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def end_with_parent(parent: int, signum: signal.Signals) -> bool:
    """Have the kernel send ``signum`` when the parent dies; ``False`` when it has died already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    # It may have died before the call; compared with the recorded pid because a subreaper is not 1.
    return os.getppid() == parent


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
