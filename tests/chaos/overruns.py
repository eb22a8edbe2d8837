"""Jobs that never end by themselves: in C code, deaf to signals, or without their alarm."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import time
from contextlib import suppress


def hang_in_c() -> None:
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2_000_000_000)


def hold_the_gil() -> None:
    ctypes.PyDLL(None).sleep(60)


def swallow() -> None:
    while True:
        with suppress(BaseException):
            time.sleep(60)


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(60)


def steal_the_alarm() -> None:
    signal.alarm(0)
    time.sleep(60)


def steal_the_timer() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.sleep(60)


def take_the_handler() -> None:
    signal.signal(signal.SIGALRM, lambda *_: None)
    while True:
        time.sleep(60)


def stop_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)


#: modes whose first attempt ends by a kill, and how long after the deadline that may be: the master's grace, if the
#: alarm has been robbed
OVERRUN = {
    "hang_in_c": hang_in_c, "hold_the_gil": hold_the_gil, "swallow": swallow, "block_signals": block_signals,
    "steal_the_alarm": steal_the_alarm, "steal_the_timer": steal_the_timer, "take_the_handler": take_the_handler,
    "stop_itself": stop_itself,
}  # fmt: skip
ROBBERS = {"block_signals", "steal_the_alarm", "steal_the_timer", "take_the_handler", "stop_itself"}
