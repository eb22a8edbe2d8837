"""A pool and its producers on PostgreSQL with a standby: it is promoted under load, and a ledger says what is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from queuepool.config import urls
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores
from queuepool.stores.sql.hosts_check import inspect_hosts
from tests.pool.test_failovers import AT_ONCE, AT_WORK, LEASES, Ledger, Load, loaded, resumes
from tests.support.brands import USER
from tests.support.databases import DatabaseServer
from tests.support.django_project import project_in
from tests.support.drivers import site_at
from tests.support.eventually import eventually
from tests.support.overlapping import overlapping
from tests.support.pgbouncer import pooler
from tests.support.pools import Site
from tests.support.standbys import EVERYBODY, Pair, port_of, replicating, streaming

ORDER = """
from django.db import transaction
from shop.jobs import send
from shop.models import Order
with transaction.atomic():
    send.dispatch(Order.objects.create(name={!r}).pk)
"""


@pytest.fixture
def pair() -> Iterator[Pair]:
    with streaming() as found:
        yield found


@pytest.fixture
def over(pair: Pair, tmp_path: Path) -> Iterator[Site]:
    """A place for pools on both servers."""
    found = site_at(urls.url(pair.url), tmp_path)
    yield found
    found.queue.close()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue("postgres")
    return found


def ended(pair: Pair, load: Load, site: Site, away: float = 0.0) -> float:
    """Kill the primary and promote the standby some seconds later; returns when it was promoted, once jobs go on."""
    pair.primary.kill()
    killed = time.time()
    eventually(lambda: time.time() >= killed + away)
    pair.promote()
    promoted = time.time()
    eventually(lambda: resumes(site, load, promoted))
    return promoted


def test_a_standby_takes_no_job_and_check_says_what_it_protects_from(pair, over):
    pair.catch_up()
    on_standby = ConnectionSettings(url=pair.standby.url)
    with closing(Queue(on_standby)) as queue, pytest.raises(StoreDown, match="read-only, like a standby"):
        queue.push("do", {"mode": "ok"})
    with closing(Stores(on_standby)) as stores, pytest.raises(StoreDown, match="read-only, like a standby"):
        stores.queue.sizes("default")  # a loop's session begins with LISTEN

    for said in ("is the primary", "warn: standbys that follow: 1, none of them synchronous", "is a standby"):
        assert is_said(pair, said)
    for names, commits, said in (
        ("other", "on", "FAIL: of 1 standbys that follow, none is among synchronous_standby_names (other)"),
        ("*", "off", "warn: standbys that follow: 1, but synchronous_commit is off"),
        ("*", "on", "ok: standbys that follow: 1, synchronous_standby_names *"),
    ):
        pair.configure(synchronous_standby_names=names, synchronous_commit=commits)
        eventually(partial(is_said, pair, said))
    pair.standby.stop()
    eventually(partial(is_said, pair, "FAIL: of 0 standbys that follow"))


def is_said(pair: Pair, words: str) -> bool:
    return any(words in f"{grade.value}: {found}" for grade, found in inspect_hosts(urls.url(pair.url)))


@pytest.mark.thorough("half a minute, and what a standby promises is PostgreSQL's")
def test_a_killed_primary_costs_what_its_standby_had_not_got(pair, over):
    with loaded(over) as (_, load):
        killed = time.time()
        promoted = ended(pair, load, over)

    ledger = Ledger.of(load)
    assert ledger.is_bounded(killed, promoted)
    assert ledger.slow == 1
    assert ledger.work_after(promoted) < AT_WORK


@pytest.mark.thorough("as above")
def test_a_lagging_standby_loses_its_lag_and_no_more(pair, over):
    """A job whose reserve is lost begins again, and its first worker is killed as soon as its pool hears of that."""
    for _ in range(10):
        over.push(queue="unserved")
    leases = LEASES.replace("15", "25")  # longer than all this takes
    with over.pool("--runtime-dir", str(over.path / "other"), config=leases), loaded(over, config=leases) as (_, load):
        for _ in range(3):
            over.push("beat", seconds=12.0, tag="long", delay=2)
        pair.catch_up()
        stopped = pair.stop_sending()
        for _ in range(10):
            over.push(queue="unserved")
        eventually(lambda: load.since(stopped) > 50)
        eventually(lambda: len(over.trail(event="start", tag="long")) > 1)
        promoted = ended(pair, load, over, away=5.0)  # the longer, the later each process looks again

    ledger = Ledger.of(load)
    print([one.seconds for one in overlapping(over)])
    assert over.queue.size("unserved") == 10
    assert ledger.is_bounded(stopped, promoted)
    assert ledger.slow >= 1  # again where its end is in the lag
    assert all(one.began > stopped and one.seconds < AT_ONCE for one in overlapping(over))


@pytest.mark.thorough("as above")
def test_a_synchronous_standby_loses_nothing(pair, over):
    pair.be_synchronous()
    with loaded(over) as (_, load):
        stopped = pair.stop_sending()
        eventually(lambda: time.time() > stopped + 0.4)
        promoted = ended(pair, load, over)

    ledger = Ledger.of(load)
    assert ledger.is_bounded(stopped, promoted)
    assert ledger.lost == []
    assert ledger.slow == 1


@pytest.mark.thorough("as above")
def test_an_old_primary_that_comes_back_as_a_standby_is_passed_over(pair, over):
    with loaded(over) as (_, load):
        ended(pair, load, over)
        pair.fence()
        since = time.time()
        pair.standby.execute(pair.standby.url, EVERYBODY)  # so all look for the primary again
        eventually(lambda: resumes(over, load, since))

    assert Ledger.of(load).lost == []


@pytest.mark.thorough("as above")
def test_a_primary_that_is_made_read_only_is_left_at_the_next_write(pair, over):
    with loaded(over) as (_, load):
        pair.make_read_only()
        since = time.time()
        pair.promote()
        eventually(lambda: resumes(over, load, since))

    ledger = Ledger.of(load)
    assert ledger.lost == []
    assert ledger.slow == 1


@pytest.mark.thorough("as above")
def test_everybody_whose_session_is_ended_goes_on(pair, over):
    with loaded(over) as (_, load):
        for _ in range(5):
            since = time.time()
            pair.primary.execute(pair.primary.url, EVERYBODY)
            eventually(lambda since=since: resumes(over, load, since))

    ledger = Ledger.of(load)
    assert ledger.lost == []
    assert ledger.twice == []
    assert ledger.slow == 1


@pytest.mark.thorough("as above")
def test_an_order_and_its_job_are_both_there_after_a_promotion_or_neither(pair, over):
    pair.be_synchronous()
    pair.primary.execute(pair.primary.url, "CREATE TABLE orders (id integer)")
    acked, unsure, numbers = list[int](), list[int](), count()
    with pair.application() as engine:

        def order() -> None:
            number = next(numbers)
            try:
                with engine.begin() as transaction:
                    transaction.execute(text(f"INSERT INTO orders VALUES ({number})"))
                    over.queue.within(transaction).push("do", {"mode": "ok", "tag": str(number)})
            except (DBAPIError, StoreDown):
                unsure.append(number)
            else:
                acked.append(number)

        killing = threading.Timer(0.5, pair.primary.kill)  # in the middle of an order, most of the time
        killing.start()
        eventually(lambda: order() or unsure)
        killing.join()
        pair.promote()
        eventually(lambda: order() or acked[-1:] > unsure[-1:])
        with engine.connect() as connection:
            there = set(connection.execute(text("SELECT id FROM orders")).scalars())

    assert set(acked) <= there <= {*acked, *unsure}
    assert len(there) == over.queue.size()


@pytest.mark.thorough("as above")
def test_a_pooler_that_is_restarted_costs_no_job(server, tmp_path):
    with server.database() as url, pooler(server, "transaction") as between:
        site = site_at(between.before(url), tmp_path)
        with loaded(site) as (_, load):
            for _ in range(3):
                between.kill()
                between.start()
                since = time.time()
                eventually(lambda since=since: resumes(site, load, since))
        site.queue.close()

    ledger = Ledger.of(load)
    assert ledger.lost == []
    assert ledger.slow == 1


@pytest.mark.thorough("as above")
def test_a_replica_of_mariadb_that_is_promoted_by_hand_costs_no_job(tmp_path):
    with replicating(tmp_path) as pair:
        site = site_at(pair.url, tmp_path)
        with loaded(site) as (_, load):
            pair.fence()
            pair.catch_up()
            eventually(lambda: load.unsure > 20)
            pair.promote()
            promoted = time.time()
            eventually(lambda: resumes(site, load, promoted))
        site.queue.close()

    ledger = Ledger.of(load)
    assert ledger.lost == []
    assert ledger.twice == []
    assert ledger.slow == 1
    assert ledger.work_after(promoted) < AT_WORK


@pytest.mark.thorough("test_django_settings.py has the URL of several hosts")
def test_orders_of_django_and_their_jobs_follow_a_promotion_where_the_settings_name_both_servers(pair, tmp_path):
    pytest.importorskip("django")
    where = {"HOST": "127.0.0.1,127.0.0.1", "PORT": f"{port_of(pair.primary)},{port_of(pair.standby)}"}
    login = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": USER}
    options = {"OPTIONS": {"target_session_attrs": "read-write"}}
    project = project_in(tmp_path, DATABASES={"default": login | where | options})
    project.manage("migrate", "--run-syncdb")
    project.python(ORDER.format("before"))
    pair.catch_up()
    pair.primary.kill()
    pair.promote()
    project.python(ORDER.format("after"))
    project.work()

    assert ["before", "after"] == [note["name"] for note in project.notes()]
