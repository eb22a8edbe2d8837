"""Start Python programs as a shell would, but forked from an interpreter that has imported queuepool already.

A start costs a twelfth so. The program is executed where its start differs in what an interpreter reads once (variables
of its own, modules that hide ours or a library's), and where the start itself is tested: ``real=True``, or the mark
``real_start`` of a test. The mark ``libraries`` names what else the interpreter has imported: a framework, say.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from tests.support.warm_interpreter import LONGEST_MESSAGE, is_plain

ROOT = Path(__file__).parents[2]
#: an interpreter, its C library or its loader reads them at the start
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_")
#: what a forked program can be given
KNOWN = {"env", "cwd", "stdin", "stdout", "stderr"}

#: set by the mark ``real_start``
always_real = False
#: set by the mark ``libraries``
libraries: tuple[str, ...] = ()
#: variables of this process as it began: the first program may be started by a test, or a library, that has set others
BEGAN_WITH = dict(os.environ)
#: CPU seconds of each forked program that has ended
_seconds: list[float] = []
_interpreters: list[Interpreter] = []
_lock = threading.Lock()  # tests start programs from several threads


def run(
    args: Sequence[str], *, real: bool = False, input: str | bytes | None = None, capture_output: bool = False,
    text: bool = False, timeout: float = 60.0, check: bool = False, **how: Any,
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """Run ``[sys.executable, WORDS ...]`` to its end; the rest is as of ``subprocess.run``."""
    with ExitStack() as opened:
        files = [opened.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        if input is not None:
            files[0].write(input.encode() if isinstance(input, str) else input)
            files[0].seek(0)
            how["stdin"] = files[0]
        if capture_output:
            how |= {"stdout": files[1], "stderr": files[2]}
        code = _wait(start(args, real=real, **how), timeout)
        outputs = [_said(file, text) for file in files[1:]] if capture_output else [None, None]
    done = subprocess.CompletedProcess(args, code, *outputs)
    if check:
        done.check_returncode()
    return done


def start(args: Sequence[str], *, real: bool = False, **how: Any) -> Process | subprocess.Popen[Any]:
    """Start ``[sys.executable, WORDS ...]``; ``how`` is as of ``subprocess.Popen``."""
    if (
        not (real or always_real)
        and args[0] == sys.executable
        and set(how) <= KNOWN
        and subprocess.PIPE not in how.values()
    ):
        env, cwd = how.get("env") or os.environ, os.fspath(how.get("cwd") or os.getcwd())
        with ExitStack() as opened:
            streams = _streams(how, opened)
            if forked := _interpreter().start([os.fsdecode(word) for word in args], env, cwd, streams):
                return forked
    return subprocess.Popen(args, **how)


def seconds() -> float:
    """CPU seconds of the forked programs that have ended."""
    return sum(_seconds)


def end() -> None:
    """End the interpreters that were started."""
    while _interpreters:
        _interpreters.pop().end()


def _interpreter() -> Interpreter:
    with _lock:
        for interpreter in _interpreters:
            if interpreter.libraries == libraries:
                return interpreter
        _interpreters.append(Interpreter(libraries))
        return _interpreters[-1]


def _streams(how: Mapping[str, Any], opened: ExitStack) -> list[int]:
    """The three descriptors that ``subprocess`` would give."""
    fds: list[int] = []
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        match how.get(name):
            case None:
                fds.append(number)
            case subprocess.DEVNULL:
                fds.append(null := os.open(os.devnull, os.O_RDWR))
                opened.callback(os.close, null)
            case subprocess.STDOUT:
                fds.append(fds[1])
            case int(fd):
                fds.append(fd)
            case file:
                fds.append(file.fileno())
    return fds


def _wait(process: Process | subprocess.Popen[Any], timeout: float) -> int:
    try:
        return process.wait(timeout)
    except BaseException:
        process.kill()
        process.wait()
        raise


def _said(file: IO[bytes], text: bool) -> str | bytes:
    file.seek(0)
    said = file.read()
    return said.decode().replace("\r\n", "\n") if text else said


class Process:
    """A running program, with what ``subprocess.Popen`` offers of it."""

    def __init__(self, args: Sequence[str], answers: socket.socket) -> None:
        self.args = args
        self.returncode: int | None = None
        self._answers = answers
        self.pid = int(answers.recv(100) or b"-1")
        assert self.pid > 0, "the warm interpreter has died"

    def poll(self) -> int | None:
        if self.returncode is None and self._has_ended(0.0):
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, signum: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has been reaped just now: it is no child of ours that keeps its pid
                os.kill(self.pid, signum)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout: float | None) -> bool:
        ended = select.poll()  # which takes any descriptor, unlike `select`
        ended.register(self._answers, select.POLLIN)
        return bool(ended.poll(None if timeout is None else timeout * 1000))

    def _end(self) -> None:
        status, seconds = json.loads(self._answers.recv(100) or b"[9, 0]")
        self._answers.close()
        self.returncode = os.waitstatus_to_exitcode(status)
        _seconds.append(seconds)


class Interpreter:
    """One of those that this process of the tests has: each has imported other libraries."""

    def __init__(self, libraries: tuple[str, ...]) -> None:
        self.libraries = libraries
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm_interpreter", str(theirs.fileno()), *libraries],
                pass_fds=[theirs.fileno()], cwd=ROOT, env=BEGAN_WITH,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,  # no terminal, whose streams have other buffers
            )  # fmt: skip
        self._imported = set(json.loads(self._control.recv(LONGEST_MESSAGE)))

    def start(self, args: Sequence[str], env: Mapping[str, str], cwd: str, streams: Sequence[int]) -> Process | None:
        """``None``: it must be executed."""
        request = json.dumps({"words": args[1:], "env": dict(env), "cwd": cwd}).encode()
        if len(request) >= LONGEST_MESSAGE or not self._can_become(args[1:], env, cwd):
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._control, [request], [*streams, theirs.fileno()])
        return Process(args, ours)

    def end(self) -> None:
        self._control.close()
        self._process.wait(30)

    def _can_become(self, words: Sequence[str], env: Mapping[str, str], cwd: str) -> bool:
        if not is_plain(words) or _read_at_start(env) != _read_at_start(BEGAN_WITH):
            return False
        places = {Path(cwd, place).resolve() for place in ("", *env.get("PYTHONPATH", "").split(os.pathsep))} - {ROOT}
        return not any(self._imported & _modules_in(place) for place in places)


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if name.startswith(READ_AT_START) and name != "PYTHONPATH"}


def _modules_in(folder: Path) -> set[str]:
    """What can be imported from there."""
    if not folder.is_dir():
        return set()
    return {entry.name.partition(".")[0] for entry in folder.iterdir() if entry.suffix in ("", ".py", ".so", ".pyc")}
