"""Databases at their limits, in odd modes, and after a failover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from databases import DatabaseServer
from eventually import eventually
from pools import Site
from samples import ids, payload
from store.contract import OURS, record, reserved

from queuepool.build import Stores
from queuepool.client import Queue
from queuepool.errors import StoreDown, StoreError
from queuepool.settings import ConnectionSettings
from queuepool.stores.sql.migrate import migrate

MIB = 1024 * 1024
#: what a statement of ours is beside one payload
AROUND = 300


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


@pytest.mark.parametrize("shared", [False, True], ids=["worker", "producer"])
def test_a_payload_that_the_server_does_not_take_is_refused_and_no_outage(narrow, shared):
    with connected(narrow, shared=shared) as stores:
        with pytest.raises(StoreError, match=f"max_allowed_packet, {MIB}") as caught:
            stores.queue.push("default", [payload("a", data="x" * MIB)])

        assert not isinstance(caught.value, StoreDown)
        stores.queue.push("default", [payload("b", data="x" * (MIB - AROUND))])
        assert 1 == stores.queue.sizes("default").total


def test_a_record_that_the_server_does_not_take_is_refused_and_the_job_kept(narrow):
    with connected(narrow) as stores:
        [lease] = reserved(stores.queue, payload("a", data="x" * (MIB - AROUND)))
        with pytest.raises(StoreError, match="max_allowed_packet") as caught:
            stores.queue.fail(lease, "a", record(lease))

        assert not isinstance(caught.value, StoreDown)
        assert [True] == stores.queue.renew([(OURS, lease)])


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
    assert 1 == queue.sizes().reserved
    queue.close()


# sql_mode


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
            stores.queue.push("q" * 300, [payload("c")])
