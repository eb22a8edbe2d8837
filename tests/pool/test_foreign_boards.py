"""A board that a pool on another store left in the directory is not settled, and does no harm."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.board.board import Board, Role
from queuepool.config.connections import identity_of
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from queuepool.unix import proc
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site, is_gone
from tests.support.processes import kill

pytestmark = pytest.mark.every_store("moved")


def database(url: str) -> ConnectionSettings:
    client = SqlClient(url, create=True)
    migrate(client)
    client.close()
    return ConnectionSettings(url=url)


@pytest.fixture(params=["a database", "another prefix"])
def moved(request, connection: ConnectionSettings, sqlite_url: str, tmp_path: Path) -> Iterator[Site]:
    """A site with a trail and a log of its own, whose queue is somewhere else."""
    connection = database(sqlite_url) if request.param == "a database" else replace(connection, prefix="other_")
    (tmp_path / "moved").mkdir()
    queue = Queue(connection)
    yield Site(connection, tmp_path / "moved", queue)
    queue.close()


def kill_the_whole_pool(pool: RunningPool) -> None:
    """As when a host dies: nobody of it can do anything any more."""
    kill(*pool.titles())
    pool.wait()


def killed_with_a_job(site: Site) -> RunningPool:
    """A pool on this site that was killed with a job in hand."""
    site.push("until", gate=str(site.path / "gate"), maxTries=0)
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="start"))
        kill_the_whole_pool(pool)
        pool.runtime = str(site.path / "nothing")  # what it has left is what the test is about
    return pool


def boards(site: Site) -> list[Path]:
    return [path for path in (site.path / "run" / "default").glob("board.*") if path.name.count(".") == 1]


def test_a_pool_on_another_store_works_beside_the_board_of_a_killed_one_whose_next_start_settles_it(site, moved):
    killed_with_a_job(site)
    (left,) = boards(site)
    here = ["--runtime-dir", str(site.path / "run")]
    (moved.path / "pool.ini").write_text(
        f"[pool]\nmodules = tests.support.poolapp\nruntime_dir = {site.path / 'run'}\n"
    )
    with moved.pool("--workers", "1", *here) as pool:
        moved.push("ok")
        moved.push("kill", tag="dies", maxTries=1)
        moved.push("ok", delay=1.5)
        eventually(lambda: 2 == len(moved.trail(event="end")) and moved.queue.stores.failed.count())
        told = moved.run("status", *here, *moved.where)
        checked = moved.run("check", "-c", "pool.ini", *moved.where)
        pool.signal(signal.SIGTERM)
        assert 0 == pool.wait()
        assert [left] == boards(site)
        (site.path / "gate").touch()
        with site.pool("--workers", "1"):
            eventually(lambda: site.trail(event="end"))

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start")]
    assert "Traceback" not in pool.log()
    assert 1 == pool.log().count(f"{left.name} was left by a pool on a store other than")
    assert f"{left.name} was left by a pool on a store other than" in told.stdout
    assert f"warn pool default: {left.name} was left by a pool on a store other than" in checked.stdout


@pytest.mark.thorough("the test above has a board of another store, the next ones orphans of another boot")
def test_an_orphan_of_another_store_is_killed_in_time_by_the_steward_that_finds_it(site, moved):
    site.push("block_signals", timeout=2, maxTries=1)
    with site.pool("--workers", "1") as pool:
        (start,) = eventually(lambda: site.trail(event="start"))
        kill(pool.steward(), pool.pid)
        pool.wait()
        with moved.pool("--workers", "1", "--runtime-dir", str(site.path / "run")) as other:
            eventually(lambda: is_gone(start["pid"]))
            other.signal(signal.SIGTERM)
            assert 0 == other.wait()
            with site.pool("--workers", "1"):
                record = eventually(site.queue.stores.failed.page)[0]

    assert f"worker=1 pid={start['pid']} killed: OVERDUE" in other.log()
    assert "TimedOut" in record.exception


SAME = [
    ("redis://127.0.0.1", "redis://user:secret@127.0.0.1:6379/0"),
    ("redis://HOST/1", "rediss://host:6379/1?ssl_ca_certs=/ca.pem"),
    ("unix:///run/redis.sock", "unix://:secret@/run/redis.sock?db=0"),
    ("postgresql://host/app", "postgresql://user:secret@host:5432/app?sslmode=require"),
    ("mysql://host/app", "mariadb://user@host:3306/app"),
    ("sqlite:////srv/queue.db", "sqlite:////srv/./queue.db"),
]
OTHER = [
    ("redis://host", "redis://host/1"),
    ("redis://host", "redis://host:6380"),
    ("redis://host", "redis://other"),
    ("unix:///run/redis.sock", "unix:///run/redis.sock?db=1"),
    ("postgresql://host/app", "postgresql://host/other"),
    ("postgresql://host/app", "mysql://host/app"),
    ("postgresql:///app?host=/run/one", "postgresql:///app?host=/run/other"),
    ("sqlite:////srv/queue.db", "sqlite:////srv/other.db"),
]


def identity(url: str, **more: str) -> str:
    return identity_of(ConnectionSettings(url=url, **more))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_store_is_the_same_however_its_url_is_written(one, other):
    assert identity(one) == identity(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_store_has_another_name(one, other):
    assert identity(one) != identity(other)


def test_a_prefix_makes_another_store_of_the_keys_of_redis_alone():
    assert identity("redis://host") != identity("redis://host", prefix="app_")
    assert identity("mysql://host/app") == identity("mysql://host/app", prefix="app_")


# Another system: a reboot, or another container on the same volume


_BOOT = Path("/proc/sys/kernel/random/boot_id")


def led() -> tuple[int, int, int]:
    """A process that leads a session; and which pid and start time an old board has for it."""
    stranger = int(subprocess.check_output(["sh", "-c", "setsid sleep 120 > /dev/null & echo $!"]))
    return stranger, stranger, proc.start_time(stranger)


def alone() -> tuple[int, int, int]:
    """A process whose session's leader is dead; and that leader's pid, as an old board has it."""
    leader = subprocess.Popen(["sh", "-c", "sleep 120 > /dev/null & echo $!"], start_new_session=True, stdout=-1)
    stranger = int(leader.communicate()[0])
    return stranger, leader.pid, 1


@pytest.mark.fault("F28")
@pytest.mark.every_store("site")
@pytest.mark.by_turns("somebody", "system")
@pytest.mark.parametrize(("somebody", "system"), [(led, "00000000-1"), (alone, "00000000-1"), (alone, "{boot}-1")])
def test_nobody_is_signalled_by_the_numbers_of_another_boot_or_container_and_its_jobs_go_back(site, somebody, system):
    killed_with_a_job(site)
    stranger, pid, start_time = somebody()
    [path] = boards(site)
    [slot] = Board.open(path, write=True).of(Role.WORKER)
    slot.pid, slot.start_time, slot.deadline = pid, start_time, 1.0  # it is long past
    path.rename(path.with_name("-".join([*path.name.split("-")[:2], system.format(boot=_BOOT.read_text()[:8])])))
    (site.path / "gate").touch()
    try:
        with site.pool("--workers", "1"):
            eventually(lambda: site.trail(event="end"))
            eventually(lambda: path.name.split("-")[1] not in "".join(map(str, boards(site))))
            assert not is_gone(stranger)
    finally:
        kill(stranger)
