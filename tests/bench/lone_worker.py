"""Run ``queuepool work --stop-when-empty`` and print the seconds from its first event to its last."""

from __future__ import annotations

import os
import sys
import time

from queuepool import on
from queuepool.cli import main
from queuepool.events import WorkerStarting, WorkerStopping

began = 0.0
#: the worker takes what is printed for its log
_printed = os.dup(1)


@on(WorkerStarting)
def start(event: WorkerStarting) -> None:
    global began
    began = time.monotonic()


@on(WorkerStopping)
def stop(event: WorkerStopping) -> None:
    os.write(_printed, f"{time.monotonic() - began}\n".encode())


if __name__ == "__main__":
    sys.argv = ["queuepool", "work", *sys.argv[1:], "--memory", "0", "--quiet", "--stop-when-empty"]
    main()
