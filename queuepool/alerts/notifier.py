"""The process that sends one notice of an alert: separate, as a program may do anything and a server may never answer.

It reads a request (JSON) from standard input, and writes a ``Delivery`` (a JSON list) to standard output.
It imports nothing of a pool. If all else fails, the kernel's alarm ends it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from typing import Any, NamedTuple

from queuepool.unix import fork, proc
from queuepool.unix.escape import escaped
from queuepool.unix.signals import Alarm, reset_inherited

#: seconds that a program or a server may take; and that ending a program may take
TIMEOUT, _TO_END = 10.0, 2.0
#: most bytes that we write; most characters kept of what a program prints; most bytes read of a server's answer
MAX_ANSWER, _MAX_OUTPUT, _MAX_BODY = 65536, 2000, 65536
#: seconds between two looks at a program, and most reads of its output at each
_TICK, _READS = 0.05, 64
Notice = Mapping[str, Any]


class Delivery(NamedTuple):
    """What became of a notice."""

    #: empty = it was sent
    problem: str
    #: the beginning of what the program printed
    output: str = ""
    #: how many processes the program left behind; they were killed
    left: int = 0


def main() -> None:
    """Carry out the request; the entry point of the process."""
    reset_inherited()
    request = json.load(sys.stdin.buffer)
    proc.show(f"queuepool: notifier [{request['pool']}] running by={request['by']}")
    alarm = Alarm(FileIO(os.devnull, "w"))
    if request["by"] == "exec":
        alarm.arm(TIMEOUT + _TO_END + 1.0)
        found = _run(request["program"], request["notice"])
    else:
        alarm.arm(TIMEOUT)
        found = Delivery(_post(request["url"], request["form"], request["notice"]))
    alarm.disarm()
    problem, output = (escaped(text)[:_MAX_OUTPUT] for text in found[:2])
    os.write(1, json.dumps([problem, output, found.left]).encode())


def _run(command: list[str], notice: Notice) -> Delivery:
    """Run a program with the notice as its input.

    All that it has started ends with it: this process adopts its orphans.
    """
    proc.adopt_orphans()
    own = os.getpid()
    try:
        program = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: proc.end_with_parent(own, signal.SIGKILL),  # this process has no threads
        )
    except OSError as error:
        return Delivery(f"{command[0]}: {error.strerror}")
    assert program.stdin
    assert program.stdout
    with suppress(BrokenPipeError), program.stdin:  # the program need not read it
        program.stdin.write(json.dumps(notice).encode())
    problem, output = _watched(program.pid, program.stdout.fileno())
    return Delivery(problem, output.decode("utf-8", "replace").strip(), _end_all())


def _watched(pid: int, pipe: int) -> tuple[str, bytes]:
    """What became of the program, and the beginning of what it printed; the rest is read and dropped."""
    os.set_blocking(pipe, False)
    output, until = b"", time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        ended = dict(fork.reap({pid})).get(pid)
        output = (output + _printed(pipe))[: 4 * _MAX_OUTPUT]
        if ended is not None:
            return ("" if ended == 0 else proc.cause_of(ended)), output
        time.sleep(_TICK)
    _end_all()
    return f"it took longer than {TIMEOUT:g} s", output


def _printed(pipe: int) -> bytes:
    """The first part of what is in the pipe. Empties the pipe, unless something keeps filling it."""
    found = b""
    with suppress(BlockingIOError):
        for _ in range(_READS):
            if not (part := os.read(pipe, _MAX_BODY)):
                break
            found = found or part
    return found


def _end_all() -> int:
    """Kill the processes that the program has left behind; returns how many."""
    killed, until = 0, time.monotonic() + _TO_END
    list(fork.reap(()))  # those that have ended by themselves
    while (left := proc.children()) and time.monotonic() < until:
        for pid in left:
            with suppress(PermissionError):  # another user's
                fork.kill(pid)
        killed += sum(1 for _ in fork.reap(left))
        time.sleep(_TICK)
    return killed


def _post(url: str, form: str, notice: Notice) -> str:
    """Post the notice as JSON; returns what went wrong, without the URL, which may be a secret."""
    from http.client import HTTPException
    from urllib import request
    from urllib.error import HTTPError, URLError

    class NoRedirects(request.HTTPRedirectHandler):
        def redirect_request(self, *_: object, **__: object) -> None:
            """Follow no redirect: the notice is only for the address in the configuration."""

    body = {"text": _line_of(notice)} if form == "slack" else notice
    headers = {"Content-Type": "application/json", "User-Agent": "queuepool"}
    try:
        asked = request.Request(url, json.dumps(body).encode(), headers, method="POST")
        with request.build_opener(NoRedirects).open(asked, timeout=TIMEOUT) as answer:
            answer.read(_MAX_BODY)
    except HTTPError as error:
        return f"the server answered {error.code} {error.reason}"
    except URLError as error:
        return f"the server cannot be reached: {error.reason}"
    except (OSError, HTTPException) as error:
        return f"the server's answer was lost: {type(error).__name__}: {error}"
    except ValueError as error:  # its text may contain part of the URL
        return f"the server's name or its answer is malformed: {type(error).__name__}"
    return ""


def _line_of(notice: Notice) -> str:
    return f"{notice['state']} on {notice['host']}, pool {notice['pool']}: {notice['text']}"
