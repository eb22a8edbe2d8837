"""The store's clock is set while jobs run: which jobs overlap and for how long, and what a step back delays.

A lease is renewed after each third of ``retry_after``: it ends early after a step forward of more than two thirds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.support.clocks import SetClock
from tests.support.databases import DatabaseServer, Postgres, running
from tests.support.eventually import eventually
from tests.support.lines import killed_at
from tests.support.pools import RunningPool, Site, is_gone
from tests.support.redis_server import start_redis

pytestmark = pytest.mark.every_store("site")

LASTS = 9.0
#: seconds for two looks at a lease and a kill, on a busy machine; with a third of a lease it is less than a whole one
A_MOMENT = 3.0


@pytest.fixture(scope="module")
def clock() -> Iterator[SetClock]:
    with tempfile.TemporaryDirectory(prefix="queuepool-clock-") as folder:
        Path(folder).chmod(0o755)  # a database may be nobody's
        yield SetClock(Path(folder))


@pytest.fixture(params=["redis", "postgres"])
def site(request, clock, tmp_path) -> Iterator[Site]:
    """On a store with that clock."""
    clock.step(0)
    settings = ConnectionSettings(url=request.getfixturevalue(f"{request.param}_of_the_clock"), retry_after=LASTS)
    with closing(Queue(settings)) as queue:
        found = Site(settings, tmp_path, queue)
        clock.step(500)
        before = time.time()
        assert before + 499 < found.queue.stores.queue.stage(["default"]).now < time.time() + 501
        clock.step(0)
        yield found


@pytest.fixture(scope="module")
def redis_server(clock, tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("redis")
    with clock.preloaded(pytest.MonkeyPatch()):
        server = start_redis(str(folder))
    yield f"unix://{folder}/redis.sock"
    server.kill()
    server.wait()


@pytest.fixture
def redis_of_the_clock(redis_server: str) -> str:
    with closing(redis.Redis.from_url(redis_server)) as client:
        client.flushall()
    return redis_server


@pytest.fixture(scope="module")
def postgres_server(clock) -> Iterator[DatabaseServer]:
    """One for all tests: to make it takes a second of a processor."""
    with ExitStack() as stack:
        with clock.preloaded(pytest.MonkeyPatch()):
            server = stack.enter_context(running(Postgres))
        yield server


@pytest.fixture
def postgres_of_the_clock(postgres_server: DatabaseServer) -> Iterator[str]:
    with postgres_server.tables() as url:
        yield url


@contextmanager
def a_long_job(site: Site) -> Iterator[RunningPool]:
    """It runs as long as the test looks; then it ends, once."""
    gate = site.path / "gate"
    with site.pool("--workers", "2", "--tries", "5", config=f"[connection]\nretry_after = {LASTS}\n") as pool:
        site.push("until", gate=str(gate), tag="long")
        eventually(lambda: site.trail(event="start", tag="long"))
        yield pool
        gate.touch()
        eventually(lambda: 0 == site.queue.size())
    assert 1 == len(site.trail(event="end", tag="long"))


def test_after_a_long_step_forward_a_running_job_overlaps_for_a_third_of_its_lease_at_most(site, clock):
    with a_long_job(site) as pool:
        clock.step(3600)
        site.push("ok", tag="next")  # an idle worker finds the ended lease when it looks for this
        (first, second) = eventually(lambda: site.trail(event="start", tag="long")[1:] and site.trail(tag="long"))
        eventually(lambda: is_gone(first["pid"]))
        assert "could not be renewed" in eventually(lambda: "process died" in pool.log() and pool.log())

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start", tag="long")]
    assert killed_at(pool.log()) - second["at"] <= LASTS / 3 + A_MOMENT


# A lease that is renewed in a moment has two thirds of its time left: after this step a third, for a busy machine.
@pytest.mark.by_turns("step")
@pytest.mark.parametrize("step", [LASTS / 3, -3600])
def test_a_short_step_forward_and_any_step_back_harm_no_running_job(site, clock, step):
    with a_long_job(site):
        clock.step(step)
        pushed = time.time()
        site.push("ok", tag="now")
        site.push("ok", tag="later", delay=1.5 * LASTS)
        eventually(lambda: site.trail(event="end", tag="later"))  # and not after another hour

    assert 1 == len(site.trail(event="start", tag="long"))
    assert 1.5 * LASTS <= site.trail(event="end", tag="later")[0]["at"] - pushed
    assert site.trail(event="end", tag="now")


@pytest.mark.by_turns("step")
@pytest.mark.parametrize("step", [-30, -3600])
def test_a_step_back_delays_by_itself_what_was_delayed(site, clock, step):
    began = time.monotonic()
    site.push("ok", delay=5)
    clock.step(step)

    found = site.queue.stores.queue.reserve(["default"], 1, 1)
    assert [] == found.leases
    assert remains(5 - step, began, found.next_due)


@pytest.mark.parametrize("step", [-30, -3600])
@pytest.mark.thorough("leases have to end; the tests above have running jobs and delayed ones")
def test_a_step_back_keeps_what_a_dead_host_held_in_redis_by_as_much_and_in_a_database_no_longer(site, clock, step):
    store, began = site.queue.stores.queue, time.monotonic()
    site.push("ok")
    assert 1 == len(store.reserve(["default"], 1, 1).leases)
    clock.step(step)

    # A database says when a reservation began: one that begins in the future is known to be wrong, and set to now.
    expected = LASTS - step if site.connection.url.startswith("unix") else LASTS
    assert remains(expected, began, store.reserve(["default"], 2, 1).next_due)


def remains(seconds: float, began: float, found: float | None) -> bool:
    """Whether that is what is left, at two moments since ``began``, of these seconds; some stores count whole ones."""
    return found is not None and seconds - (time.monotonic() - began) - 1 <= found <= seconds + 1
