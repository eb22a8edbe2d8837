"""Ctrl-C in a process that runs a command."""

from __future__ import annotations

import os
import signal
from types import FrameType

from queuepool.unix.exit_codes import INTERRUPTED

_IMPORT = "<frozen importlib._bootstrap>"


def listen() -> None:
    """Exit at once when interrupted during an import; elsewhere an interrupt is ``KeyboardInterrupt`` as always.

    During an import Python may make another exception of it (``__set_name__``, up to 3.11) or lose it (in the callbacks
    of its own locks). Nothing has to be undone there: a command leaves by ``os._exit`` in any case.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a script's background process ignores it
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(_: int, frame: FrameType | None) -> None:
    while frame:
        if frame.f_code.co_filename == _IMPORT:
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt
