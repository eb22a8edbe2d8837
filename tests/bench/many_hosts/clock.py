"""A wall clock that is wrong for some processes alone.

A time namespace leaves the wall clock as it is. libfaketime, which sets the clock of servers in tests, breaks
``clock_nanosleep`` with a monotonic deadline, and so Python's ``time.sleep``.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_SOURCE = r"""
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    const char *wrong = getenv("CLOCK_WRONG_BY");
    if (!failed && wrong && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += atol(wrong);
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *here) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (here) *here = exact.tv_sec;
    return exact.tv_sec;
}
"""
_NAME = "wrong_clock"


def can_be_wrong() -> bool:
    """Whether there is a C compiler."""
    return shutil.which("cc") is not None


def build(folder: Path) -> None:
    """Make what ``wrong_by`` preloads."""
    source = folder / f"{_NAME}.c"
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(folder / f"{_NAME}.so"), str(source)], check=True)


def wrong_by(seconds: int, folder: Path) -> list[str]:
    """Words before a command whose wall clock is to be wrong; its other clocks are right."""
    return ["env", f"LD_PRELOAD={folder}/{_NAME}.so", f"CLOCK_WRONG_BY={seconds}"] if seconds else []
