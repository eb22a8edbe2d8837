"""An interpreter that has imported queuepool and its libraries once, and forks a Python program at each request.

It imports nothing of an application's, but the further libraries that its words name, and starts no thread. A child
begins as ``python WORDS`` would: with its ``__main__``, ``sys.argv``, ``sys.path``, streams, environment and directory.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

from setproctitle import getproctitle, setproctitle

import queuepool
from queuepool.stores.redis.scripts import load_all

#: what queuepool imports only when it is needed, and most commands need
LIBRARIES = (
    "sqlalchemy.dialects.sqlite.pysqlite", "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.mysql.pymysql", "cryptography.hazmat.primitives.ciphers", "psutil", "asyncio",
    "click.shell_completion", "subprocess",
)  # fmt: skip
#: not imported by a command: what belongs to frameworks, to tests, or is the program itself
LEFT_OUT = ("queuepool.contrib", "queuepool.testing", "queuepool.__main__")
LONGEST_MESSAGE = 100_000
#: where modules are found whatever the environment says
USUAL_PATH = [place for place in sys.path[1:] if place not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
#: modules whose functions still run after another one has taken their name
_kept: list[ModuleType] = []


def main(control: socket.socket, libraries: Sequence[str]) -> None:
    """Serve requests; in a child, run what was asked for, and end as an interpreter does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # Ctrl-C is for the tests, which then end this process
    getproctitle()  # finds the memory of the title while the environment is still there
    gc.disable()  # searches for garbage among modules take a tenth of their import
    import_all(libraries)
    load_all()
    gc.enable()
    gc.collect()
    gc.freeze()  # children leave its pages shared
    control.send(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})).encode())
    if request := Interpreter(control).serve():
        control.detach()  # closed by now: its number will be another file's
        try:
            become(**request)
        except SystemExit as left:
            if not isinstance(left.code, int | None):
                raise  # with words to say
            end(left.code or 0)
        end(0)


def end(code: int) -> NoReturn:
    """End as an interpreter does, but leave the memory to the kernel.

    To take each module apart costs 0.09 s of a processor, as their pages, shared so far, are copied for it.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # it has none, its reader is gone, or it is closed
            stream.flush()
    os._exit(code & 0xFF)


def import_all(libraries: Sequence[str]) -> None:
    """Every module of queuepool that a command may import, what those import late, and what was asked for."""
    for module in pkgutil.walk_packages(queuepool.__path__, "queuepool."):
        if not module.name.startswith(LEFT_OUT):
            importlib.import_module(module.name)
    for name in (*LIBRARIES, *libraries):
        importlib.import_module(name)


class Interpreter:
    """Forks at requests, and tells each requester the pid, then the wait status and the CPU seconds."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, tuple[int, socket.socket]] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)

    def serve(self) -> dict[str, Any] | None:
        """The request, in a child that it made; ``None`` when the requester has closed its end."""
        while True:
            for key, _ in self._selector.select():
                if key.fd in self._children:
                    self._reap(key.fd)
                    continue
                message, fds, _, _ = socket.recv_fds(self._control, LONGEST_MESSAGE, 4)
                if not message:
                    return None
                if self._fork(fds) == 0:
                    return dict(json.loads(message))

    def _fork(self, fds: list[int]) -> int:
        pid = os.fork()
        if pid == 0:
            self._keep_alone(fds[:3])
            return 0
        answers = socket.socket(fileno=fds.pop())
        for fd in fds:
            os.close(fd)
        watched = os.pidfd_open(pid)
        self._children[watched] = (pid, answers)
        self._selector.register(watched, selectors.EVENT_READ)
        with suppress(OSError):  # the requester is gone
            answers.send(b"%d" % pid)
        return pid

    def _reap(self, watched: int) -> None:
        pid, answers = self._children.pop(watched)
        self._selector.unregister(watched)
        os.close(watched)
        _, status, usage = os.wait4(pid, 0)
        with suppress(OSError):  # nobody waits for it any more
            answers.send(json.dumps([status, usage.ru_utime + usage.ru_stime]).encode())
        answers.close()

    def _keep_alone(self, streams: list[int]) -> None:
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        self._selector.close()
        os.closerange(3, max(*map(int, os.listdir("/proc/self/fd")), 3) + 1)


def become(words: list[str], env: dict[str, str], cwd: str) -> None:
    """Run ``python WORDS`` in this process. Python's streams are by number: they are those that were given by now."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()  # Django sets TZ in the process of a test: each start after that would be a real one
    tempfile.tempdir = None
    setproctitle(os.fsencode(" ".join([sys.executable, *words])).decode(errors="replace"))  # as ps would show it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    places = [place for place in env.get("PYTHONPATH", "").split(os.pathsep) if place]
    _run(words, [*places, *(place for place in USUAL_PATH if place not in places)])


def _run(words: list[str], path: list[str]) -> None:
    match words:
        case ["-m", module, *rest]:
            sys.path[:], sys.argv = [os.getcwd(), *path], ["-m", *rest]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", program, *rest]:
            sys.path[:], sys.argv = ["", *path], ["-c", *rest]
            _kept.append(sys.modules["__main__"])
            sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(program, "<string>", "exec"), sys.modules["__main__"].__dict__)
        case [file, *rest]:
            sys.path[:], sys.argv = [os.path.dirname(os.path.abspath(file)), *path], [file, *rest]
            _kept.append(sys.modules["__main__"])
            runpy.run_path(file, run_name="__main__")


def is_plain(words: Sequence[str]) -> bool:
    """Whether these words are of the three kinds that a child can begin with."""
    return len(words) > 0 and (words[0] in ("-m", "-c") or not words[0].startswith("-"))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
