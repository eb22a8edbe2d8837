"""With hostile modules and in poor environments the pool starts, or says in a line what is missing."""

from __future__ import annotations

import resource
import signal
import sys

import pytest

from tests.faults.corpus.cases import cases
from tests.faults.corpus.modules import BROKEN, HOSTILE
from tests.support import warm
from tests.support.commands import queuepool
from tests.support.eventually import eventually


@pytest.mark.parametrize("entry", cases(HOSTILE))
@pytest.mark.by_turns("entry")
def test_bad_input_module(site, entry):
    """Jobs run once, within their time, and a stop is obeyed."""
    (site.path / "hostile.py").write_text(HOSTILE[entry])
    ids = {site.push("ok") for _ in range(5)}
    site.push("hang_in_c", timeout=0.3)
    with site.pool("--workers", "1", "--modules", "tests.support.poolapp,hostile", wait=False) as pool:
        eventually(site.queue.stores.failed.page)
        eventually(lambda: 0 == site.queue.size())
        pool.signal(signal.SIGTERM)
        pool.wait()
        assert "killed: STOP" not in pool.log()

    assert sorted(ids) == sorted(line["id"] for line in site.trail(event="end"))
    assert "TimedOut" in site.queue.stores.failed.page()[0].exception
    assert "signal 14" in site.queue.stores.failed.page()[0].exception


@pytest.mark.parametrize("entry", cases(BROKEN))
def test_bad_input_module_that_does_not_import(tmp_path, entry):
    text, words = BROKEN[entry]
    if text:
        (tmp_path / "broken.py").write_text(text)
    done = queuepool("work", "--url", "unix:///nonexistent.sock", "--modules", "broken", "--once", cwd=tmp_path)

    assert (1, "") == (done.returncode, done.stdout)
    assert words in done.stderr
    assert 1 >= done.stderr.count("Traceback")
    assert done.stderr.splitlines()[-1].startswith("queuepool: cannot import broken: ")


#: what an interpreter reads at its start: a worker with another is executed, the others are forked
AS_EVER = {name: value for name, value in warm.BEGAN_WITH.items() if name.startswith(warm.READ_AT_START)}
#: what there is of an environment besides the paths of this test; no `env` is ours, whole
ENVIRONMENTS = {
    # Times are UTC and clocks the store's: neither zone nor clock of the host is asked.
    "B086 no time zone of that name": {"TZ": "No/Where"},
    "B086 time zone of garbage": {"TZ": ":\x01\udcff;;99"},
    "B087 nothing at all": {},
    "B087 ASCII alone": {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "B087 locale that is not there": {"LC_ALL": "xx_YY.UTF-8"},
    "B087 output in ASCII": {"PYTHONIOENCODING": "ascii:strict"},
    "B087 home that is not there": {"HOME": "/nonexistent", "USER": "", "TMPDIR": "/nonexistent"},
    # The program does not speak systemd's protocol (its unit says Type=exec), so there is nothing to warn of.
    "B088 variables of systemd": {"NOTIFY_SOCKET": "@" + "x" * 200, "WATCHDOG_USEC": "abc", "WATCHDOG_PID": "1"},
    "B083 empty variables": {"QUEUEPOOL_POOL_WORKERS": "", "QUEUEPOOL_CONNECTION_URL": " ", "QUEUEPOOL_CONFIG": ""},
}


@pytest.mark.parametrize("entry", cases(ENVIRONMENTS))
def test_bad_input_environment(site, entry):
    site.push("ok", tag="zwölf \u202e")
    paths = {key: value for key, value in site.env().items() if key in ("PYTHONPATH", "TRAIL")}
    command = [sys.executable, "-m", "queuepool", "work", *site.flags("--stop-when-empty", "--verbose")]
    is_bare = not ENVIRONMENTS[entry]
    env = paths | ({} if is_bare else AS_EVER) | ENVIRONMENTS[entry]
    done = warm.run(command, real=is_bare, env=env, cwd=site.path, capture_output=True, timeout=30)

    assert 0 == done.returncode, done.stderr
    assert ["zwölf \u202e"] == [line["tag"] for line in site.trail(event="end")]
    lines = [line for line in done.stderr.splitlines() if not line.startswith(b"    ")]  # not those of the beginning
    assert 10 == len(lines), done.stderr
    assert [] == [line for line in lines if b"Z " not in line[:26]]


@pytest.mark.bad_input("B083")
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("QUEUEPOOL_POOL_WORKERS", "0", "'0' is neither a number"),
        ("QUEUEPOOL_POOL_WROKERS", "4", "did you mean 'workers'?"),
        ("QUEUEPOOL_POOL_QUEUE", "a\nb", "contains a tab, a line break"),
        ("QUEUEPOOL_CONNECTION_URL", "redis://:s3cr3t@@h", "has one @ too many"),
        ("QUEUEPOOL_CONFIG", "nowhere.ini", "cannot be read"),
    ],
)
def test_a_bad_variable_is_refused_by_its_name_also_where_the_file_says_it_well(tmp_path, name, value, words):
    (tmp_path / "pool.ini").write_text("[pool]\nworkers = 2\nqueue = a\n")
    file = [] if name == "QUEUEPOOL_CONFIG" else ["-c", "pool.ini"]
    done = queuepool("start", *file, env={name: value}, cwd=tmp_path)

    assert (78, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert done.stderr.startswith(f"{value if file == [] else name}: ")
    assert words in done.stderr
    assert "s3cr3t" not in done.stderr


@pytest.mark.real_start  # a forked pool has the modules of the tests in its address space as well
@pytest.mark.bad_input("B087")
def test_with_few_descriptors_and_little_address_space_a_pool_runs_all_the_same(site):
    for _ in range(40):  # none is leaked from job to job
        site.push("ok")
    with site.pool("--workers", "2", wait=False) as pool:
        # The interpreter takes its time to start: whatever is opened or forked is bound by these.
        resource.prlimit(pool.pid, resource.RLIMIT_NOFILE, (32, 32))
        resource.prlimit(pool.pid, resource.RLIMIT_AS, (2**27, 2**27))
        eventually(lambda: 40 == len(site.trail(event="end")))
