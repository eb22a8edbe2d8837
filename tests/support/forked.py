"""What a child finds that was forked by a job, a module or a program of Python's: of signals, timers and streams."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from typing import Any


def facts() -> dict[str, Any]:
    """As text, so that those of two processes can be compared."""
    handlers = {int(signum): signal.getsignal(signum) for signum in signal.valid_signals()}
    with open("/proc/self/status", "rb") as status:
        lines = dict(line.split(b":\t", 1) for line in status.read().splitlines() if b":\t" in line)
    return {
        "handlers": sorted(f"{number} {handler}" for number, handler in handlers.items() if handler),
        **{name: lines[name.encode()].decode() for name in ("SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd")},
        "timers": [*signal.getitimer(signal.ITIMER_REAL)],
        "wakeup": signal.set_wakeup_fd(-1),
        "faulthandler": faulthandler.is_enabled(),
    }


def forked_facts() -> dict[str, Any]:
    """The facts of a child."""
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(target, json.dumps(facts()).encode())
        os._exit(0)
    os.close(target)
    with os.fdopen(source) as pipe:
        found = dict(json.load(pipe))
    os.waitpid(child, 0)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(forked_facts()))
