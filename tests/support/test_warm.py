"""A program that is forked from the warm interpreter finds what one that is executed finds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import warm
from tests.support.eventually import eventually

#: what a program can see of how it was started
SEEN = """
import gc, json, os, resource, signal, sys, time
def of(stream):
    return [stream.mode, stream.encoding, stream.errors, stream.line_buffering, stream.fileno(), stream.isatty()]
seen = {
    "argv": sys.argv, "path": sys.path, "name": __name__, "flags": list(sys.flags), "env": dict(os.environ),
    "cwd": os.getcwd(), "streams": [of(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "actions": {int(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "group": os.getpgrp(), "session": os.getsid(0),
    "descriptors": os.listdir("/proc/self/fd"), "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "umask": os.umask(0), "zone": [*time.tzname, *time.localtime(0)],
    "collector": gc.get_threshold(), "title": open("/proc/self/cmdline").read().rstrip(chr(0)),
    "children": open(f"/proc/self/task/{os.getpid()}/children").read(),
}
print(json.dumps(seen))
"""


@pytest.fixture
def seen_by(tmp_path) -> Callable[..., dict[str, Any]]:
    """What ``python WORDS`` sees in an empty directory."""

    def seen_by(*words: str, **how: Any) -> dict[str, Any]:
        how = {"env": dict(os.environ), **how}
        done = warm.run([sys.executable, *words], cwd=tmp_path, capture_output=True, check=True, **how)
        seen = dict(json.loads(done.stdout))
        seen["title"] = seen["title"].replace("\0", " ")
        return seen

    (tmp_path / "seen.py").write_text(SEEN)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "program.py").write_text(SEEN)
    return seen_by


@pytest.mark.parametrize(
    "words", [["-m", "seen", "a b"], ["-c", SEEN, "-x"], ["folder/program.py", "1"]], ids=["-m", "-c", "a file"]
)
def test_it_sees_the_same(seen_by, words):
    executed, forked = seen_by(*words, real=True, input=""), seen_by(*words, input="")

    assert {} == {key: (executed[key], forked[key]) for key in executed if executed[key] != forked[key]}


def test_it_has_its_own_environment(seen_by, tmp_path):
    env = {"A": "1", "TZ": "America/New_York", "PYTHONPATH": f"{tmp_path}/folder:{warm.ROOT}"}

    assert seen_by("-m", "seen", real=True, env=env) == seen_by("-m", "seen", env=env)


@pytest.mark.by_turns("program")
@pytest.mark.parametrize("program", ["import sys; sys.exit(3)", "exit('no')", "1 / 0", "import os; os._exit(5)", ""])
def test_it_ends_as_an_executed_one(program):
    forked, executed = (
        warm.run([sys.executable, "-c", program], capture_output=True, text=True, real=real) for real in (False, True)
    )

    assert (executed.returncode, executed.stdout) == (forked.returncode, forked.stdout)
    assert executed.stderr.splitlines()[-1:] == forked.stderr.splitlines()[-1:]


def test_what_it_registers_for_its_exit_is_done():
    program = "import atexit, threading, time; atexit.register(print, 'exit'); threading.Thread(target=print).start()"

    assert "\nexit\n" == warm.run([sys.executable, "-c", program], capture_output=True, text=True).stdout


def test_a_signal_ends_it():
    process = warm.start([sys.executable, "-c", "import signal; signal.pause()"])

    assert None is process.poll()
    process.terminate()
    assert -signal.SIGTERM == process.wait(timeout=30)
    process.kill()  # nobody any more


def test_one_that_does_not_end_in_time_is_killed():
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run([sys.executable, "-c", "import signal; signal.pause()"], timeout=0.1)


def is_forked(*words: str, **how: Any) -> bool:
    """Whatever variables other tests and their libraries have set in this process."""
    process = warm.start([sys.executable, *words], stdin=subprocess.DEVNULL, **{"env": warm.BEGAN_WITH, **how})
    process.wait(timeout=30)
    return isinstance(process, warm.Process)


def test_it_is_executed_where_a_fork_would_differ(tmp_path):
    (tmp_path / "own.py").touch()
    assert is_forked("-c", "", cwd=tmp_path)

    assert not is_forked("-S", "-c", "")
    assert not is_forked("-c", "", env={**warm.BEGAN_WITH, "PYTHONHASHSEED": "0"})
    assert not is_forked("-c", "", env={**warm.BEGAN_WITH, "LC_ALL": "C"})
    assert not is_forked("-c", "", start_new_session=True)
    assert not is_forked("-c", "pass #" + "x" * 100_000)
    (tmp_path / "redis.py").touch()
    assert not is_forked("-c", "", cwd=tmp_path)
    assert not is_forked("-c", "", cwd=tmp_path, env={**warm.BEGAN_WITH, "PYTHONPATH": str(warm.ROOT)})


@pytest.mark.real_start
def test_it_is_executed_where_the_mark_says_so():
    assert not is_forked("-c", "")


def test_its_seconds_are_counted():
    before = warm.seconds()
    warm.run([sys.executable, "-c", "for _ in range(10 ** 6): pass"], env=warm.BEGAN_WITH, cwd=warm.ROOT)

    assert before < warm.seconds()


def test_an_interpreter_ends_with_those_who_use_it():
    program = (
        "import sys; from tests.support import warm\n"
        "warm.run([sys.executable, '-c', '']); print(warm._interpreters[0]._process.pid)"
    )
    pid = int(warm.run([sys.executable, "-c", program], capture_output=True, cwd=warm.ROOT, real=True).stdout)

    eventually(lambda: not os.path.exists(f"/proc/{pid}"))
