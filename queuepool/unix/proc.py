"""Facts about processes from the kernel: identity, system, parent, memory, title; and how much memory there is."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from setproctitle import getproctitle, setproctitle

if TYPE_CHECKING:
    import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
#: Python has no name for it
RLIMIT_LOCKS = 10
_MB = 1024 * 1024
_GROUPS = Path("/sys/fs/cgroup")
# It locates the arguments and the environment in memory now: after a variable was removed it could not set a title.
with suppress(UnicodeDecodeError):  # an argument is not text, which others report
    getproctitle()


@cache
def library() -> Any:
    """psutil, imported on first use: slow to import, and `status` does without. A pool calls this before forking."""
    import psutil

    return psutil


def start_time_if_readable(pid: int) -> int:
    """As ``start_time``, but 0 when it cannot be read (no free descriptor, say): for values that are only recorded."""
    try:
        return start_time(pid)
    except OSError:
        return 0


def start_time(pid: int) -> int:
    """When this process started, in the kernel's ticks (on Linux; elsewhere in Unix seconds); 0 when there is none.

    With the pid it identifies the process for good. Raises ``OSError`` when it cannot be read.
    """
    try:
        return int(_stat(pid)[19])
    except FileNotFoundError:
        pass  # not Linux, or no such process: ask psutil
    except ProcessLookupError:
        return 0
    try:
        return int(library().Process(pid).create_time())
    except library().NoSuchProcess:
        return 0


def is_alive(pid: int, started: int) -> bool:
    """Whether the process whose ``start_time`` is ``started`` still runs, rather than a later one with its pid."""
    return pid > 0 and started != 0 and start_time(pid) == started and not _is_zombie(pid)


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped, as by SIGSTOP; ``False`` where there is no /proc."""
    try:
        return _stat(pid)[0] in (b"T", b"t")
    except OSError:
        return False


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
    """The fields of the kernel's ``stat`` line, from the state on. Raises ``OSError``."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def resident_mb(pid: int) -> float:
    """Current resident memory in MB of 1024 KiB (not the peak); 0.0 when the process is gone or cannot be read."""
    try:
        return float((_self(pid) if pid == os.getpid() else library().Process(pid)).memory_info().rss) / _MB
    except (library().Error, OSError):
        return 0.0


@lru_cache(maxsize=1)
def _self(pid: int) -> psutil.Process:
    """Cached: creating one reads most of what the kernel knows about the process."""
    return library().Process(pid)  # type: ignore[no-any-return]


def children() -> list[int]:
    """Pids of our children, dead ones not yet reaped included; for a process of one thread.

    Empty when the list cannot be read.
    """
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except FileNotFoundError:
        return [child.pid for child in library().Process().children()]
    except OSError:
        return []  # we are out of descriptors


def all_pids() -> list[int]:
    """Every pid that this system shows us."""
    return list(library().pids())


def variable(pid: int, name: str) -> str:
    """This variable as it was started with; empty when it has none, is gone or not ours to read."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except FileNotFoundError:  # it is gone, or this system shows none there
        return _variable_elsewhere(pid, name)
    except OSError:
        return ""
    _, _, rest = (b"\0" + raw).partition(f"\0{name}=".encode())
    return rest.partition(b"\0")[0].decode(errors="replace")


def _variable_elsewhere(pid: int, name: str) -> str:
    try:
        return str(library().Process(pid).environ().get(name, ""))
    except (library().Error, OSError):
        return ""


def catches(pid: int, signum: int) -> bool | None:
    """Whether it has a handler for this signal; ``None`` where that cannot be seen."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "")
    return bool(int(caught, 16) >> (signum - 1) & 1) if caught else None


def has_open(pid: int, path: Path) -> bool | None:
    """Whether it has this file open; ``None`` where that cannot be seen."""
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None
    return any(_leads_to(link, path) for link in links)


def _leads_to(link: Path, path: Path) -> bool:
    with suppress(OSError):  # closed by now
        return os.path.samestat(link.stat(), path.lstat())
    return False


def file_locks(pid: int) -> int:
    """Its soft limit of file locks, which no kernel enforces; 0 = none, or it cannot be read."""
    with suppress(AttributeError, OSError):  # another system, or another user's process, whose file we may read
        return max(0, resource.prlimit(pid, RLIMIT_LOCKS)[0])  # a tenth of what the file costs
    return _file_locks_told(pid)


def _file_locks_told(pid: int) -> int:
    try:
        limits = Path(f"/proc/{pid}/limits").read_text()
    except (OSError, UnicodeDecodeError):
        return 0
    line = next((line.split() for line in limits.splitlines() if line.startswith("Max file locks")), [])
    return int(line[3]) if len(line) > 3 and line[3].isdecimal() else 0


def adopt_orphans() -> bool:
    """Become the parent of every process below us that loses its own; ``False`` where the system cannot (Linux can)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent: int, signum: signal.Signals) -> bool:
    """Have the kernel send us ``signum`` when the parent dies; ``False`` when it has already died."""
    _prctl(_PR_SET_PDEATHSIG, int(signum))
    # It may have died before the call. Compare with the recorded pid, not with 1: a subreaper has another pid.
    return os.getppid() == parent


def _prctl(option: int, value: int) -> bool:
    """Call Linux's prctl; ``False`` where it was refused or does not exist."""
    import ctypes  # imported here, as psutil is: a process that forks has called this before

    libc = ctypes.CDLL(None, use_errno=True)
    return hasattr(libc, "prctl") and libc.prctl(option, value, 0, 0, 0) == 0


def show(title: str) -> None:
    """Set the title that ``ps`` shows: one line of printable ASCII (``?`` for the rest), at most 200 bytes."""
    if not (title.isascii() and title.isprintable()):
        title = "".join(char if " " <= char <= "~" else "?" for char in title)
    setproctitle(title[:200])


def plausible(status: int | None) -> int | None:
    """The status itself; ``None`` if it cannot be a wait status."""
    try:
        os.waitstatus_to_exitcode(status or 0)
    except (ValueError, OverflowError):
        return None
    return status


def cause_of(status: int) -> str:
    """A wait status in words: ``signal 9 (SIGKILL)`` or ``exit code 3``. Raises ``ValueError`` for anything else."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


@cache
def boot() -> str:
    """The first digits of the kernel's id of this boot, since pids repeat after each; ``0`` where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return "0"


def namespace() -> str:
    """The number of this process's namespace of pids (each container has one); ``0`` where there are none."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return "0"


class Memory(NamedTuple):
    """In MB of 1024 KiB. ``available``: what new processes can have without swapping."""

    total: float
    available: float


def memory() -> Memory | None:
    """The host's memory, or less where a control group (version 2) of this process has a limit; ``None``: unknown."""
    try:
        whole = library().virtual_memory()
    except (library().Error, OSError):  # no free descriptor, say
        return None
    found = [Memory(whole.total / _MB, whole.available / _MB), *_limits(_own_group(), _GROUPS)]
    return Memory(min(one.total for one in found), min(one.available for one in found))


def _own_group() -> Path:
    """The control group of this process, as the process sees it; the root where that is unknown."""
    with suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                return _GROUPS / line[4:]
    return _GROUPS


def _limits(group: Path, root: Path) -> list[Memory]:
    """What this group and those around it, up to the ``root``, allow; a group without a limit is skipped."""
    inside = [group, *group.parents]
    groups = inside[: inside.index(root) + 1] if root in inside else [group]
    return [found for each in groups if (found := limit_of(each))]


def limit_of(group: Path) -> Memory | None:
    """The limit of one control group, and what it has left; ``None`` if it has none, or that cannot be read.

    Cached files count as free: the kernel drops those that were not used lately before it kills a process.
    """
    try:
        most, used = int((group / "memory.max").read_text()), int((group / "memory.current").read_text())
        lines = (group / "memory.stat").read_text().splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):  # ``max``, which is not a number; another system; a group that has gone
        return None
    return Memory(most / _MB, max(most - used + cached, 0) / _MB)
