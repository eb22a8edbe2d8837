"""Stores that a test opens are closed, however it ends."""

from __future__ import annotations

import pytest

from queuepool.stores.factory import Stores
from queuepool.stores.sql.client import SqlClient
from tests.support import drivers
from tests.support.drivers import connection_of, opened


def fail(stores: Stores, found: list[SqlClient]) -> None:
    found.append(stores.client)
    stores.queue.sizes("default")
    raise ZeroDivisionError


def test_stores_are_closed_when_a_test_fails_or_their_tables_cannot_be_made(request, monkeypatch):
    found, connection = list[SqlClient](), connection_of("postgres", request)

    def refuse(client: SqlClient) -> None:
        found.append(client)
        client.ask(lambda connection: None)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), opened(connection) as stores:
        fail(stores, found)
    monkeypatch.setattr(drivers, "migrate", refuse)
    with pytest.raises(ZeroDivisionError), opened(connection):
        pass

    assert [None, None] == [client._mine for client in found]
