"""The store works behind PgBouncer, which passes a server connection on after each transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from queuepool.jobs.client import Queue
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate
from queuepool.stores.sql.postgresql import is_lent
from tests.support import processes
from tests.support.databases import USER, DatabaseServer
from tests.support.drivers import site_at
from tests.support.eventually import eventually
from tests.support.pgbouncer import PgBouncer, pooler
from tests.support.pools import RunningPool, Site
from tests.support.scenarios import outage

easier = pytest.mark.thorough("in transaction mode more changes beneath a store: each transaction has another session")


@pytest.fixture(params=[pytest.param("session", marks=easier), "transaction"])
def bouncer(request, postgres) -> Iterator[PgBouncer]:
    with pooler(postgres, request.param) as running:
        yield running


@pytest.fixture
def site(bouncer, postgres_url, tmp_path) -> Iterator[Site]:
    found = site_at(bouncer.before(postgres_url), tmp_path)
    yield found
    found.queue.close()


@pytest.mark.thorough("a pool outlives its pooler below, and the contract holds what is lost with a worker")
def test_through_a_pooler_nothing_is_lost_or_run_twice_while_workers_are_killed(site):
    producers, killed = 16, set()

    def produce(_: int) -> list[str]:
        with closing(Queue(site.connection)) as queue:
            return [queue.push("do", {"mode": "ok"}) for _ in range(25)]

    with pools(site) as running, ThreadPoolExecutor(4) as threads:
        pushing = threads.map(produce, range(producers))
        for pool in running * 3:
            victim = eventually(pool.workers)[0]
            killed.add(victim)
            processes.kill(victim)
            eventually(lambda pool=pool: 2 == len(pool.workers()))
        pushed = {identity for some in pushing for identity in some}
        eventually(lambda: 0 == site.queue.size())

    ends = site.trail(event="end")
    first = {line["id"]: line["pid"] for line in reversed(ends)}
    twice = {identity for identity, times in Counter(line["id"] for line in ends).items() if times > 1}
    assert [] == site.queue.stores.failed.page()
    assert (25 * producers, set()) == (len(pushed), pushed ^ set(first))
    assert set() == {identity for identity in twice if first[identity] not in killed}


def test_a_push_through_a_pooler_wakes_who_waits(site):
    """Who was not woken would wait longer than the test may."""
    with site.pool("--workers", "1", "--sleep", "600", config="[connection]\nblock_for = 600\n"):
        for number in range(5):
            site.push("ok", tag=str(number))
            eventually(lambda number=number: site.trail(event="end", tag=str(number)))


def test_a_lent_session_is_given_back_as_it_was(postgres, postgres_url, tmp_path):
    """Its next user is another application, which must not meet our settings."""
    with pooler(postgres, "transaction", size=1) as bouncer:
        url = bouncer.before(postgres_url)
        with closing(SqlClient(url)) as client:
            migrate(client)
        before = session(postgres, url)
        found = site_at(url, tmp_path)
        with found.pool("--workers", "2"), closing(found.queue):
            for _ in range(20):
                found.push("ok")
            eventually(lambda: 20 == len(found.trail(event="end")))
            eventually(lambda: 0 == found.queue.size())
        assert before == session(postgres, url)


def session(server: DatabaseServer, url: str) -> list[Any]:
    """Whose it is, and what it keeps: settings, prepared statements, channels."""
    kept = [
        "SELECT pg_backend_pid()",
        "SELECT name, setting FROM pg_settings WHERE name <> 'application_name' AND source = 'session' ORDER BY name",
        "SELECT count(*) FROM pg_prepared_statements",
        "SELECT count(*) FROM pg_listening_channels()",
    ]
    with server.engine(url).connect() as connection:
        return [connection.exec_driver_sql(text).all() for text in kept]


def test_a_serializable_default_is_none_of_our_transactions(bouncer, postgres, postgres_url):
    postgres.execute(postgres_url, f"ALTER ROLE {USER} SET default_transaction_isolation = 'serializable'")
    try:
        with closing(SqlClient(bouncer.before(postgres_url))) as client:
            ask = "SHOW transaction_isolation"
            alone, within = (
                verb(lambda connection: connection.exec_driver_sql(ask).scalar_one())
                for verb in (client.ask, client.transaction)
            )
    finally:
        postgres.execute(postgres_url, f"ALTER ROLE {USER} RESET default_transaction_isolation")

    assert ("serializable", "read committed") == (alone, within)


def test_a_pool_outlives_a_killed_pooler(site, bouncer):
    with outage(site, bouncer):
        pass

    assert 1 == len(site.trail(event="start"))


@pytest.mark.by_turns("mode", "words")
@pytest.mark.parametrize(
    ("mode", "words"),
    [("transaction", "in transaction mode"), ("session", "apparently in session mode: its pool_size must exceed")],
)
def test_a_check_says_that_a_pooler_stands_between_and_what_it_costs(postgres, postgres_url, tmp_path, mode, words):
    with pooler(postgres, mode) as bouncer:
        found = site_at(bouncer.before(postgres_url), tmp_path)
        found.queue.close()
        done = found.run("check", *found.where)
    told = [line for line in done.stdout.splitlines() if line.startswith("warn connection")]

    assert 1 == len(told)
    assert f"connected through a pooler ({words}" in told[0]
    assert "pushes are found by polling, up to 0.05 s later" in told[0]


def test_a_session_of_ones_own_is_set_up_listens_and_prepares(postgres_url):
    def look(connection: Any) -> list[Any]:
        names = ["default_transaction_isolation", "plan_cache_mode", "client_connection_check_interval"]
        settings = [connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names]
        channels = connection.exec_driver_sql("SELECT pg_listening_channels()").scalars().all()
        return [is_lent(connection), *settings, channels, connection.connection.driver_connection.prepare_threshold]

    with closing(SqlClient(postgres_url)) as client:
        assert [False, "read committed", "force_custom_plan", "1s", ["queuepool"], 5] == client.ask(look)


@pytest.mark.parametrize(("said", "lent", "expected"), [("none", True, None), ("1", False, 1)])
def test_the_url_says_what_is_prepared_where_a_pooler_hides_itself(postgres_url, said, lent, expected):
    with closing(SqlClient(f"{postgres_url}&prepare_threshold={said}&application_name=shop")) as client:
        name, found, threshold = client.ask(
            lambda one: (
                one.exec_driver_sql("SHOW application_name").scalar_one(),
                is_lent(one),
                one.connection.driver_connection.prepare_threshold,
            )
        )

    assert ("shop", lent, expected) == (name, found, threshold)


@contextmanager
def pools(site: Site) -> Iterator[list[RunningPool]]:
    """Two of them, as on two hosts; a job may lose each of the workers that are killed."""
    flags, patient = ("--workers", "2", "--tries", "9"), "[pool]\nmax_crashes = 9\n"
    other = ("--runtime-dir", f"{site.path}/run2")
    with site.pool(*flags, config=patient) as one, site.pool(*flags, *other, config=patient) as two:
        yield [one, two]
