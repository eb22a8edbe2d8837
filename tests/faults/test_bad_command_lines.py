"""The real command refuses bad command lines in one line."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.faults.corpus.cases import case, cases
from tests.faults.corpus.command_lines import REFUSED, SECRET
from tests.faults.corpus.payloads import CATALOGUE
from tests.support import in_process
from tests.support.commands import Done, queuepool
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.redis_server import PREFIX
from tests.support.samples import payload

USAGE = 2
#: of each kind one: a verb, a flag, a value, and what only the kernel's arguments can be
REAL = ["B089 command", "B089 option", "B074 url", "B100 argument that is no text", "B100 verb of 128 KiB"]


@each("name", cases(REFUSED))
def test_bad_input(capsys: pytest.CaptureFixture[str], name: str) -> None:
    words, said = REFUSED[name]

    require_refused(in_process.queuepool(capsys, *words), said)


@pytest.mark.parametrize("name", REAL)
def test_bad_input_to_the_real_command(name: str) -> None:
    words, said = REFUSED[name]

    require_refused(queuepool(*words), said)


def require_refused(done: Done, said: str) -> None:
    """It has told so in one line, which shows no secret."""
    assert (USAGE, "", 1) == (done.returncode, done.stdout, len(done.stderr.splitlines())), done.stderr[-2000:]
    assert said in done.stderr
    assert 500 > len(done.stderr)
    assert done.stderr.rstrip("\n").isprintable()
    assert SECRET not in done.stderr


@pytest.mark.thorough("cli/test_interrupted_bulk.py kills a retry, too")
@pytest.mark.bad_input("B096")
def test_retry_all_goes_through_a_long_store_in_batches(site, server) -> None:
    """Killed in between it has put back some, and the next one goes on with the rest."""
    rows, failed = {}, f"{PREFIX}queuepool:failed"
    for number in range(2500):
        facts = {"queue": "default", "connection": "default", "name": "do", "attempts": 1, "exception": ""}
        rows[f"id-{number}"] = {"id": f"id-{number}", **facts, "payload": payload(f"id-{number}").decode()}
    server.hset(failed, mapping={identity: json.dumps(row) for identity, row in rows.items()})
    server.zadd(f"{failed}:times", dict.fromkeys(rows, server.time()[0] - 1))
    command = [sys.executable, "-m", "queuepool", "retry", "all", *site.where]
    first = subprocess.Popen(command, env=site.env())
    eventually(lambda: 0 < site.queue.size())
    first.kill()
    first.wait()
    site.run("retry", "all", *site.where)

    assert (2500, 0) == (site.queue.size(), site.queue.stores.failed.count())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        case("B052 phpredis serializer", "B052 phpredis serializer", "switch off the serializer"),
        case("B058 gzip", "B058 gzip", "it is compressed"),
        case("B054 pickle", "B054 pickle", "a Python pickle"),
        case("B005 BOM", "B005 BOM", "byte order mark"),
        case("B002 no JSON", "B002 no JSON", ""),
    ],
)
def test_bad_input_is_shown_with_what_has_wrapped_it(site, name: str, words: str) -> None:
    site.queue.push_raw(CATALOGUE[name].raw)
    site.work()
    [entry] = site.queue.stores.records.quarantined("default")
    shown = queuepool("quarantine", "show", "default", entry.id, *site.where).stdout

    assert (bool(words), True) == ("hint:" in shown, words in shown)


@pytest.mark.bad_input("B097")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_the_pool_of_another_user_is_told_as_such(site) -> None:
    """Not as one that does not run."""
    script = "import os, sys; from queuepool.cli import main, status, verbs; os.setuid(65534); main()"
    with tempfile.TemporaryDirectory(prefix="queuepool-") as folder:
        Path(folder).chmod(0o755)  # pytest's own directories let nobody through
        open_site = dataclasses.replace(site, path=Path(folder))
        command = [sys.executable, "-c", script, "status", "--runtime-dir", f"{folder}/run"]
        with open_site.pool("--workers", "1"):
            Path(folder, "run").chmod(0o755)
            done = subprocess.run(command, env=site.env(), capture_output=True, text=True, check=False)

    assert (1, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "belongs to another user" in done.stderr


MORE = pytest.mark.thorough("a real start for each moment")


@pytest.mark.bad_input("B099")
@pytest.mark.parametrize("after", [0.0, 0.03, 0.1, *(pytest.param(one, marks=MORE) for one in (0.01, 0.06, 0.2))])
def test_ctrl_c_at_any_point_once_or_twice_is_clean(site, after: float) -> None:
    """From our first line on; before that it is Python's."""
    first = (
        "sys.addaudithook(lambda what, of: (what, of[0]) == ('import', 'queuepool.cli.verbs') and os.write(1, b'.'))"
    )
    script = f"import os, sys; from queuepool.cli import main; {first}; main()"
    command = [sys.executable, "-c", script, "push", "do", "--data", "-", *site.flags()]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=site.env(), stdin=pipe, stdout=pipe, stderr=pipe)
    assert b"." == process.stdout.read(1)
    for _ in range(2):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after)
        process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)

    assert (130, b"") == (process.returncode, told)


#: where Python makes another exception of an interrupt, or loses it
IN_A_CLASS = """
import signal
class Descriptor:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
class Owner:
    attribute = Descriptor()
"""
IN_A_CALLBACK = """
import signal, weakref
class Owner:
    pass
owner = Owner()
watched = weakref.ref(owner, lambda _: signal.raise_signal(signal.SIGINT))
del owner
"""


@pytest.mark.bad_input("B099")
@pytest.mark.parametrize("module", [IN_A_CLASS, IN_A_CALLBACK])
def test_ctrl_c_during_an_import_ends_the_command_wherever_it_comes(site, module: str) -> None:
    (site.path / "interrupted.py").write_text(module)
    done = site.run("check", *site.where, "--modules", "interrupted", check=False)

    assert (130, "") == (done.returncode, done.stderr)
