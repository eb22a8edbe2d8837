"""How much memory there is, and how much of it is free: of the host, or of the control group that limits us."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from queuepool.unix import proc

_MB = 1024 * 1024
_GROUPS = Path("/sys/fs/cgroup")


class Memory(NamedTuple):
    """In MB of 1024 KiB. ``available``: what new processes can have without swapping."""

    total: float
    available: float


def memory() -> Memory | None:
    """That of the host, or less where a control group (version 2) of this process has a limit; ``None``: not known."""
    try:
        whole = proc.library().virtual_memory()
    except (proc.library().Error, OSError):  # no free descriptor, say
        return None
    found = [Memory(whole.total / _MB, whole.available / _MB), *_limits(_own_group(), _GROUPS)]
    return Memory(min(one.total for one in found), min(one.available for one in found))


def _own_group() -> Path:
    """The control group of this process, as far as it sees; the root where that is not known."""
    with suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                return _GROUPS / line[4:]
    return _GROUPS


def _limits(group: Path, root: Path) -> list[Memory]:
    """What this group and those around it, up to the ``root``, allow; a group without a limit says nothing."""
    inside = [group, *group.parents]
    groups = inside[: inside.index(root) + 1] if root in inside else [group]
    return [found for each in groups if (found := limit_of(each))]


def limit_of(group: Path) -> Memory | None:
    """The limit of one control group, and what it has left; ``None`` if it has none, or that cannot be read.

    Cached files count as free: the kernel drops those that nobody has used lately before it kills anybody.
    """
    try:
        most, used = int((group / "memory.max").read_text()), int((group / "memory.current").read_text())
        lines = (group / "memory.stat").read_text().splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):  # ``max``, which is no number; another system; a group that has gone
        return None
    return Memory(most / _MB, max(most - used + cached, 0) / _MB)
