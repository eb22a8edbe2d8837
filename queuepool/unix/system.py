"""Which system a process's number is of: numbers begin anew with each boot, and each namespace has its own."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


@cache
def boot() -> str:
    """The first digits of the kernel's name for this boot; ``0`` where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return "0"


def namespace() -> str:
    """The number of this process's namespace of pids (a container has its own); ``0`` where there are none."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return "0"
