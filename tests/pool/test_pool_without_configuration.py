"""A pool starts in an empty directory without configuration or server; its queue is a file for every verb."""

from __future__ import annotations

import json
import os
import pwd
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from queuepool.errors import StoreError
from queuepool.stores.sql.client import SqlClient
from tests.support import warm
from tests.support.commands import ROOT, Done, queuepool
from tests.support.eventually import eventually
from tests.support.lines import whole_lines

JOBS = """
from pathlib import Path
from queuepool import job

@job("jobs.hello")
def hello(name="world"):
    with Path("trail").open("a") as trail:
        trail.write(f"{name}\\n")

@job("jobs.fragile")
def fragile():
    if not Path("mended").exists():
        raise ValueError("broken")
    hello("mended")
"""


@dataclass(frozen=True, slots=True)
class Place:
    """An empty directory but for its jobs, and commands in it without a word of where the queue is."""

    path: Path

    def run(self, verb: str, *words: str) -> Done:
        runtime = [] if verb not in ("status", "stop", "scale", "pause", "continue") else ["--runtime-dir", "run"]
        return queuepool(verb, *words, *runtime, cwd=self.path, env=self._env())

    def rows(self, verb: str, *words: str) -> list[dict[str, Any]]:
        return list(json.loads(self.run(verb, *words, "--json").stdout))

    def start(self, *words: str) -> warm.Process | subprocess.Popen[bytes]:
        env = self.shell_env()
        command = [sys.executable, "-m", "queuepool", "start", "--modules", "jobs", "--runtime-dir", "run", *words]
        with (self.path / "log").open("ab") as log:
            return warm.start(command, env=env, cwd=self.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def log(self) -> str:
        return (self.path / "log").read_text()

    def trail(self) -> list[str]:
        return whole_lines(self.path / "trail")

    def shell_env(self) -> dict[str, str]:
        """Of this process, but for what it may say of a queue."""
        return {key: value for key, value in os.environ.items() if not key.startswith("QUEUEPOOL_")} | self._env()

    def _env(self) -> dict[str, str]:
        return {"PYTHONPATH": f"{self.path}:{ROOT}"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "jobs.py").write_text(JOBS)
    return Place(tmp_path)


@pytest.fixture
def pool(place: Place) -> Iterator[Place]:
    """With a pool of two workers that run."""
    master = place.start("--workers", "2")
    try:
        eventually(lambda: 2 == place.log().count("worker starting"))
        eventually(lambda: ["running"] == [pool["state"] for pool in place.rows("status")])  # the master says so later
        yield place
        place.run("stop", "--wait", "40")
        assert 0 == master.wait(timeout=60)
    except BaseException:
        print(place.log())
        for child in psutil.Process(master.pid).children() if master.poll() is None else ():
            child.kill()
        master.kill()
        master.wait()
        raise


@pytest.mark.real_start
def test_a_pool_starts_in_an_empty_directory_and_says_where_its_queue_is(pool):
    assert f"no url names a server: the queue is {pool.path}/queuepool.db\n" in pool.log()
    assert (pool.path / "queuepool.db").exists()


def test_a_job_that_is_pushed_from_another_shell_runs(pool):
    pushed = pool.run("push", "jobs.hello", "--data", '{"name": "you"}')
    eventually(lambda: pool.trail())

    assert (0, "", ["you"]) == (pushed.returncode, pushed.stderr, pool.trail())
    eventually(lambda: [("default", 0)] == [(row["queue"], row["size"]) for row in pool.rows("size")])


def test_a_failed_job_is_shown_and_can_be_tried_again(pool):
    job_id = pool.run("push", "jobs.fragile").stdout.strip()
    eventually(lambda: pool.rows("failed"))
    [failed] = pool.rows("failed")
    (pool.path / "mended").touch()
    retried = pool.run("retry", job_id)
    eventually(lambda: pool.trail())

    assert (job_id, "jobs.fragile", "ValueError: broken") == (failed["id"], failed["class"], failed["exception"])
    assert (0, ["mended"], []) == (retried.returncode, pool.trail(), pool.rows("failed"))


def test_the_pool_is_seen_and_scaled(pool):
    assert "pool default has 1 worker\n" == pool.run("scale", "1").stdout
    [status] = pool.rows("status")

    assert ("running", 1, None) == (status["state"], status["workers"], status["store_lost"])


@pytest.mark.thorough("the verb has tests of its own, and others above find this pool, too")
def test_a_restart_replaces_every_worker(pool):
    done = pool.run("restart")

    assert done.stdout.startswith("restart broadcast on connection default: ")
    eventually(lambda: 4 == pool.log().count("worker starting"))


@pytest.mark.thorough("the verb has tests of its own, and others above find this pool, too")
def test_a_paused_queue_keeps_its_jobs(pool):
    pool.run("pause", "default")
    eventually(lambda: 2 == pool.log().count("worker paused"))
    pool.run("push", "jobs.hello")
    [row] = pool.rows("monitor")
    cleared = pool.run("clear", "--force")
    pool.run("push", "jobs.hello", "--data", '{"name": "second"}')
    pool.run("continue", "default")
    eventually(lambda: pool.trail())

    assert (1, 1, 0, "OK") == (row["size"], row["pending"], row["reserved"], row["status"])
    assert "dropped 1 job of default\n" == cleared.stdout
    assert ["second"] == pool.trail()


@pytest.mark.thorough("the verb has tests of its own, and others above find this pool, too")
def test_maintenance_holds_the_workers(pool):
    assert "maintenance mode is on, connection default\n" == pool.run("down").stdout
    eventually(lambda: 2 == pool.log().count("worker paused reason=maintenance"))
    assert "maintenance mode is off, connection default\n" == pool.run("up").stdout
    eventually(lambda: 2 == pool.log().count("worker continued"))


@pytest.mark.thorough("the verb has tests of its own, and others above find this pool, too")
def test_what_is_no_job_is_kept_where_it_can_be_seen(pool):
    push = "import queuepool; queuepool.connect().push_raw(b'[]')"
    warm.run([sys.executable, "-c", push], cwd=pool.path, env=pool.shell_env(), check=True)
    [entry] = eventually(lambda: pool.rows("quarantine", "list"))

    assert ("default", "[]") == (entry["queue"], entry["payload"])
    assert (
        "dropped 1 payload of queue default on connection default\n"
        == pool.run("quarantine", "drop", "default", "--all").stdout
    )


def test_a_check_finds_nothing_wrong_and_makes_what_is_missing(place):
    done = place.run("check", "--modules", "jobs")

    assert (0, 0) == (done.returncode, done.stdout.count("FAIL") + done.stdout.count("warn"))
    assert "jobs: jobs.fragile, jobs.hello" in done.stdout


def test_a_job_may_be_pushed_before_the_pool_is_started(place):
    first, second = (place.run("push", "jobs.hello", "--queue", name) for name in ("default", "other"))
    done = place.run("work", "--modules", "jobs", "--stop-when-empty")

    assert (0, ["world"]) == (done.returncode, place.trail())
    assert "the queue is" not in done.stderr
    assert first.stderr.startswith(
        f"no url is set, so the queue is the new file {place.path}/queuepool.db. A pool finds it if it is"
    )
    assert (1, "") == (len(first.stderr.splitlines()), second.stderr)


def test_a_pool_makes_a_file_that_its_url_names_and_says_so_once(place):
    (place.path / "shop.ini").write_text("[connection]\nurl = sqlite:///shop.db\nfailed_url = sqlite:///failed.db\n")
    words = ("work", "--modules", "jobs", "--stop-when-empty", "-c", "shop.ini")
    refused = place.run("push", "jobs.hello", "-c", "shop.ini")
    first, second = place.run(*words), place.run(*words)

    assert (1, 0, 0) == (refused.returncode, first.returncode, second.returncode)
    for name in ("shop.db", "failed.db"):
        said = f"the file {place.path}/{name} was missing: created, with no job in it"
        assert (1, 0) == (first.stderr.count(said), second.stderr.count(said))
    assert 0 == place.run("push", "jobs.hello", "-c", "shop.ini").returncode
    assert 0 == place.run(*words).returncode
    assert ["world"] == place.trail()


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o640), (0o002, 0o660), (0o077, 0o600), (0, 0o660)])
def test_a_new_file_is_no_other_users_to_read(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        with closing(SqlClient(f"sqlite:///{tmp_path}/q.db", create=True)) as client:
            client.transaction(lambda connection: connection.exec_driver_sql("INSERT INTO cache VALUES ('a', 'b', 1)"))
            found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)

    assert dict.fromkeys(("q.db", "q.db-wal", "q.db-shm"), mode) == found


@pytest.mark.by_turns("url")
@pytest.mark.parametrize("url", ["", "sqlite:///named.db"])
def test_a_pool_whose_directory_cannot_be_written_to_ends_at_its_start(place, url):
    place.path.chmod(0o555)
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    runtime = ["--runtime-dir", "/tmp/none-is-made"]
    command = [
        *drop,
        sys.executable,
        "-m",
        "queuepool",
        "start",
        "--modules",
        "jobs",
        *runtime,
        *(["--url", url] * bool(url)),
    ]
    done = subprocess.run(
        command, env={"PATH": os.environ["PATH"], **place._env()}, cwd=place.path, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    place.path.chmod(0o755)

    remedy = "say where the queue is, url = sqlite:////PATH"
    assert (78, f"queuepool: {place.path} cannot be written to: {remedy}\n") == (done.returncode, done.stderr)


def test_who_comes_second_takes_the_file_that_is_there(place):
    command = [sys.executable, "-m", "queuepool", "push", "jobs.hello"]
    pushing = [warm.start(command, cwd=place.path, env={**os.environ, **place._env()}) for _ in range(6)]

    assert [0] * 6 == [process.wait(timeout=30) for process in pushing]
    assert [("default", 6)] == [(row["queue"], row["size"]) for row in place.rows("size")]


@pytest.mark.thorough("commands push there in the tests above, and a program dispatches in one below")
def test_a_python_program_pushes_there_too(place):
    push = "import queuepool; print(queuepool.connect().push('jobs.hello'), queuepool.connect('sqlite:///queuepool.db').size())"
    done = warm.run(
        [sys.executable, "-c", push], cwd=place.path, env=place.shell_env(), capture_output=True, text=True, check=True
    )

    assert "1" == done.stdout.split()[1]


def test_a_directory_that_cannot_hold_it_is_told_at_once(place):
    (place.path / "queuepool.db").mkdir()
    done = place.run("push", "jobs.hello")

    assert (1, "", 1) == (done.returncode, done.stdout, len(done.stderr.splitlines()))


def test_a_file_that_is_no_database_does_not_stay_open(tmp_path):
    (tmp_path / "q.db").write_text("not at all " * 100)
    with pytest.raises(StoreError, match="file is not a database") as caught:
        SqlClient(f"sqlite:///{tmp_path}/q.db").ask(lambda _: None)

    assert caught.tb  # whose frames would keep it open, until somebody collects them
    assert [] == [file.path for file in psutil.Process().open_files() if file.path.startswith(str(tmp_path))]


DISPATCH = """
import jobs
jobs.hello.dispatch("one")
jobs.hello.dispatch("two")
"""


def test_a_program_that_dispatches_without_a_configuration_is_warned_once_and_with_one_finds_the_queue(place):
    (place.path / "elsewhere").mkdir()
    (place.path / "pool.ini").write_text("[pool]\nmodules = jobs\n")
    command = [sys.executable, "-c", DISPATCH]
    run = partial(warm.run, command, cwd=place.path / "elsewhere", capture_output=True, text=True, check=True)
    env = place.shell_env()
    without = run(env=env)
    found = run(env=env | {"QUEUEPOOL_CONFIG": str(place.path / "pool.ini")})
    sizes = [
        place.rows("size", *words)[0]["size"]
        for words in ([], ["-c", "pool.ini"], ["--url", "sqlite:///elsewhere/queuepool.db"])
    ]

    assert 1 == without.stderr.count("no url is set, so the queue is") == len(without.stderr.splitlines())
    assert f"{place.path}/elsewhere/queuepool.db" in without.stderr
    assert f"{place.path}/queuepool.db" in found.stderr
    assert [2, 2, 2] == sizes


def test_a_pool_of_another_configuration_is_left_alone(pool, tmp_path):
    run, other = pool.path / "run", tmp_path / "other.ini"
    other.write_text(f"[pool]\nruntime_dir = {run}\n[connection]\nurl = sqlite:////nonexistent/other.db\n")
    answers = {
        verb: queuepool(verb, *words, "-c", str(other)) for verb, *words in (["status"], ["stop"], ["scale", "1"])
    }
    [facts] = json.loads(queuepool("status", "--json", "-c", str(other)).stdout)
    second = queuepool("start", "-c", str(other))
    [ours] = pool.rows("status")
    shown = pool.run("status").stdout.splitlines()

    url, user = f"sqlite:///{pool.path}/queuepool.db", pwd.getpwuid(os.geteuid()).pw_name
    whose = (
        f": the one of {other} is not running; one on {url}, started in {pool.path} by {user}, is: "
        f"say --url {url} (or --runtime-dir {run})\n"
    )
    assert [3, 3, 3] == [done.returncode for done in answers.values()]
    assert [True] * 3 == [(done.stdout + done.stderr).endswith(whose) for done in answers.values()]
    assert ("not running", False) == (facts["state"], facts["unsettled"])
    assert (75, True) == (second.returncode, f"it is that of {pool.path} on sqlite:///" in second.stderr)
    assert ("running", 2) == (ours["state"], ours["workers"])
    assert (f"sqlite:///{pool.path}/queuepool.db", ["default"], "", str(pool.path), f"{run}/default") == tuple(
        ours[key] for key in ("store", "queues", "configuration", "working_directory", "directory")
    )
    assert shown[1].startswith(f"store={ours['store']} queues=default directory={pool.path} user={ours['user']}")


@pytest.mark.thorough("the test above meets a pool of another configuration")
def test_the_flags_that_are_advised_for_a_pool_on_another_url_mean_it(place):
    mine = f"sqlite:///{place.path}/mine.db"
    place.run("migrate", "--url", mine)
    run = partial(queuepool, cwd=place.path, env={"QUEUEPOOL_POOL_RUNTIME_DIR": "run"})
    master = place.start("--url", mine, "--workers", "1")
    try:
        eventually(lambda: run("status", "--url", mine).returncode == 0)
        plain = run("stop")
        [url] = re.findall(r"say --url (\S+) ", plain.stderr)
        stopped = run("stop", "--url", url, "--wait", "40")
    finally:
        master.terminate()
        master.wait(timeout=60)

    here = f"the one on sqlite:///{place.path}/queuepool.db is not running; one on {mine}, started in {place.path} by "
    assert (3, True, 0) == (plain.returncode, here in plain.stderr, stopped.returncode)


@pytest.mark.thorough("test_several_pools.py has pools with names")
def test_a_pool_without_a_file_may_have_a_name(place):
    master = place.start("--pool", "mine", "--workers", "1")
    try:
        ours = ("status", "--pool", "mine")
        eventually(lambda: ["running"] == [pool["state"] for pool in place.rows(*ours)])
        [mine] = place.rows(*ours)
        stopped = place.run("stop", "--pool", "mine", "--wait", "40")
    finally:
        master.terminate()
        master.wait(timeout=60)

    assert ("mine", 0) == (mine["pool"], stopped.returncode)


def test_tables_are_not_made_unasked_in_a_file_of_another_program(place):
    file = place.path / "queuepool.db"
    with closing(sqlite3.connect(file)) as shop:
        shop.execute("CREATE TABLE orders (id INT)")
    words = f"the file {file}, which another program created, has no table jobs: run `queuepool migrate`"

    for verb in (["push", "jobs.hello"], ["work", "--modules", "jobs"]):
        assert words in place.run(*verb).stderr
    with closing(sqlite3.connect(file)) as shop:
        assert [("orders",)] == shop.execute("SELECT name FROM sqlite_master").fetchall()

    assert 0 == place.run("migrate").returncode == place.run("push", "jobs.hello").returncode
