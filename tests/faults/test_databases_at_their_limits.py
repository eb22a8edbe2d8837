"""Databases at their limits, in unusual modes, and after a failover."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown, StoreError
from queuepool.jobs.client import Queue
from queuepool.stores.factory import Stores
from queuepool.stores.sql.migrate import migrate
from tests.support.brands import find
from tests.support.commands import queuepool
from tests.support.databases import USER, DatabaseServer, Postgres, running
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.samples import ids, new_jobs, payload
from tests.support.store_contract import OURS, record, reserved

pytestmark = pytest.mark.every_store("driver")

MIB = 1024 * 1024
#: what a statement of ours is beside one payload
AROUND = 360


@contextmanager
def connected(url: str, **options: Any) -> Iterator[Stores]:
    stores = Stores(ConnectionSettings(url=url), **options)
    migrate(stores.client)
    yield stores
    stores.close()


@contextmanager
def server_wide(server: DatabaseServer, name: str, value: str, usual: str) -> Iterator[None]:
    """For the connections that are opened meanwhile."""
    server.execute(server.url, f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.execute(server.url, f"SET GLOBAL {name} = {usual}")


# max_allowed_packet


@pytest.fixture
def narrow(mariadb: DatabaseServer, mariadb_url: str) -> Iterator[str]:
    """A database that takes statements of a MiB at most."""
    with server_wide(mariadb, "max_allowed_packet", str(MIB), str(16 * MIB)):
        yield mariadb_url


@pytest.mark.by_turns("shared")
@pytest.mark.parametrize("shared", [False, True], ids=["worker", "producer"])
def test_a_payload_that_the_server_does_not_take_is_refused_and_no_outage(narrow, shared):
    with connected(narrow, shared=shared) as stores:
        with pytest.raises(StoreError, match=f"max_allowed_packet, {MIB}") as caught:
            stores.queue.push("default", new_jobs(payload("a", data="x" * MIB)))

        assert not isinstance(caught.value, StoreDown)
        stores.queue.push("default", new_jobs(payload("b", data="x" * (MIB - AROUND))))
        assert 1 == stores.queue.sizes("default").total


def test_a_record_that_the_server_does_not_take_is_refused_and_the_job_kept(narrow):
    with connected(narrow) as stores:
        [lease] = reserved(stores.queue, payload("a", data="x" * (MIB - AROUND)))
        with pytest.raises(StoreError, match="max_allowed_packet") as caught:
            stores.queue.fail(lease, "a", record(lease))

        assert not isinstance(caught.value, StoreDown)
        assert [True] == stores.queue.renew([lease])


def test_a_worker_whose_record_is_refused_says_so_and_goes_on(narrow, tmp_path):
    with connected(narrow):
        pass
    connection = ConnectionSettings(url=narrow)
    queue = Queue(connection)
    site = Site(connection, tmp_path, queue)
    site.push("raise", tag="x" * (MIB - 2 * AROUND))
    site.push(tag="good")
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="end", tag="good"))
        eventually(lambda: f"max_allowed_packet, {MIB}" in pool.log())
        assert "store lost" not in pool.log()
    # Its payload alone is small enough.
    assert (0, 1, 1) == (queue.sizes().reserved, queue.sizes().quarantined, len(site.trail(event="start")) - 1)
    queue.close()


# sql_mode


@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["ORACLE", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "EMPTY_STRING_IS_NULL", ""])
def test_a_server_may_have_any_sql_mode(own_mariadb, mode):
    said = "a\\b\"c'd%s:x\né"
    own_mariadb.execute(own_mariadb.url, f"SET GLOBAL sql_mode = '{mode}'")
    with connected(own_mariadb.url) as stores:
        first, second = reserved(stores.queue, payload("a", data=said), payload("b"))

        assert payload("a", data=said) == first.receipt
        assert stores.queue.release(first, 0.0, "a", "exceptions")
        assert stores.queue.fail(second, "b", record(second) | {"exception": said, "connection": ""})
        assert [("", said)] == [(failed.connection, failed.exception) for failed in stores.failed.page()]
        assert ["a"] == ids(stores.queue.reserve(["default"], OURS, 9).leases)
        with pytest.raises(StoreError):  # and is strict with us, whatever it is with others
            stores.queue.push("q" * 300, new_jobs(payload("c")))


# A standby


@dataclass(frozen=True)
class Standby(Postgres):
    """A copy of the server at ``primary``, which follows it."""

    primary: str = ""

    def set_up(self) -> list[str]:
        source = ["-h", self.primary, "-U", USER, "--checkpoint=fast", "--no-sync"]
        return [find("pg_basebackup"), *source, "-D", f"{self.folder}/data", "-R"]


@pytest.fixture
def standby(own_postgres: DatabaseServer) -> Iterator[DatabaseServer]:
    """What is committed on the one can be seen on this one too."""
    with running(partial(Standby, primary=own_postgres.socket)) as server:
        own_postgres.execute(
            own_postgres.url,
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "ALTER SYSTEM SET synchronous_commit = 'remote_apply'",
            "SELECT pg_reload_conf()",
        )
        eventually(lambda: "sync" in how_standbys_follow(own_postgres))
        yield server


def how_standbys_follow(server: DatabaseServer) -> list[str]:
    with server.engine(server.url).connect() as connection:
        return [row[0] for row in connection.execute(text("SELECT sync_state FROM pg_stat_replication"))]


@pytest.mark.thorough("pool/test_database_failovers.py has it in every run")
def test_a_standby_as_url_is_told(own_postgres, standby):
    with connected(own_postgres.url):
        pass
    for shared in (False, True):
        stores = Stores(ConnectionSettings(url=standby.url), shared=shared)
        with pytest.raises(StoreDown, match=r"read-only, like a standby"):
            stores.queue.push("default", new_jobs(payload("a")))
        stores.close()
    checked = queuepool("check", "--url", standby.url)
    assert (1, True) == (checked.returncode, "read-only, like a standby" in checked.stdout)


def test_a_pool_goes_on_when_a_standby_is_promoted(own_postgres, standby, tmp_path):
    """One address leads to the primary, and then to the standby."""
    address = tmp_path / "address"
    address.symlink_to(own_postgres.socket)
    connection = ConnectionSettings(url=own_postgres.url.replace(own_postgres.socket, str(address)))
    with connected(connection.url):
        pass
    queue = Queue(connection)
    site = Site(connection, tmp_path, queue)
    gate = tmp_path / "gate"
    with site.pool("--workers", "2") as pool:
        site.push("until", gate=str(gate), tag="held")
        site.push("ok", tag="delayed", delay=5)
        eventually(lambda: site.trail(event="start", tag="held"))
        own_postgres.kill()
        (tmp_path / "other").symlink_to(standby.socket)
        (tmp_path / "other").replace(address)
        eventually(lambda: "store lost" in pool.log())
        gate.touch()
        standby.execute(standby.url, "SELECT pg_promote()", "ALTER SYSTEM RESET synchronous_standby_names")
        standby.execute(standby.url, "SELECT pg_reload_conf()")
        eventually(lambda: "store regained" in pool.log())
        site.push(tag="after")
        eventually(lambda: {"held", "delayed", "after"} == {line["tag"] for line in site.trail(event="end")})
        eventually(lambda: 0 == queue.size())
    assert 3 == len(site.trail(event="start"))
    queue.close()


# The number of connections


@pytest.mark.parametrize("driver", ["postgres", "mariadb"])
def test_a_check_says_when_the_server_has_too_few_connections(driver, request):
    url = request.getfixturevalue(f"{driver}_url")
    queuepool("migrate", "--url", url)
    few = json.loads(queuepool("check", "--url", url, "--json", env={"QUEUEPOOL_POOL_WORKERS": "10"}).stdout)
    many = json.loads(queuepool("check", "--url", url, "--json", env={"QUEUEPOOL_POOL_WORKERS": "90"}).stdout)
    told = [row for row in many if "connections" in row["words"]]

    assert [] == [row for row in few if "connections" in row["words"]]
    assert ["warn"] == [row["grade"] for row in told]
    assert "90 workers and 1 steward hold 91 connections" in told[0]["words"]


def test_a_check_names_queues_that_the_server_takes_for_one(mariadb_url):
    with connected(mariadb_url) as stores:
        stores.queue.push("Default", new_jobs(payload("a")))
    rows = json.loads(queuepool("check", "--url", mariadb_url, "--json").stdout)

    assert [("warn", True)] == [
        (row["grade"], "'Default'" in row["words"]) for row in rows if "collation" in row["words"]
    ]
