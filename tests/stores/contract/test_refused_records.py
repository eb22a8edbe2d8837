"""A record that the failed store refuses is replaced by a plainer one: the job must not run again for want of it."""

from __future__ import annotations

import dataclasses
from contextlib import closing

import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.events import JobFailed, JobQuarantined, StoreRefused
from queuepool.events.listeners import Listeners
from queuepool.payload.envelope import decode
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settlement, Settler
from queuepool.settlement.verdict import Fail
from queuepool.stores.factory import Stores
from queuepool.unix.signals import WorkerSignals
from tests.support.drivers import opened
from tests.support.redis_server import PREFIX
from tests.support.samples import payload
from tests.support.store_contract import reserved

#: refuses a record with a long text, and takes a short one
SHORT = {
    "sqlite": (
        "CREATE TRIGGER short BEFORE INSERT ON failed_jobs WHEN length(new.exception) > 40000 "
        "BEGIN SELECT RAISE(ABORT, 'too long'); END"
    ),
    "postgresql": "ALTER TABLE failed_jobs ALTER exception TYPE varchar(40000)",
    "mysql": "ALTER TABLE failed_jobs MODIFY exception text NOT NULL",
}
ERROR = ValueError("ä" * 64 * 1024)


def settled(stores: Stores) -> list[str]:
    """Fail a job; the names of the events, in their order."""
    [lease] = reserved(stores.queue, payload("a", data={"name": "Ω"}))
    told, listeners = [], Listeners()
    for event in (JobFailed, JobQuarantined, StoreRefused):
        listeners.add(event, told.append)
    outage = Outage(WorkerSignals(), listeners, announces=False)
    writer = Settler(stores.queue, outage, listeners, stores.settings)
    assert writer.settle(Settlement(lease, decode(lease.receipt, 1), Fail(ERROR), ERROR))
    writer.emit_noted()
    return [type(event).__name__ for event in told]


def narrow(stores: Stores) -> None:
    name = stores.client.ask(lambda connection: connection.dialect.name)
    stores.client.ask(lambda connection: connection.exec_driver_sql(SHORT[name.replace("mariadb", "mysql")]))


def test_a_record_that_is_refused_is_made_anew_and_plainer(sql):
    narrow(sql)

    assert ["StoreRefused", "JobFailed"] == settled(sql)
    [failed] = sql.failed.page()
    assert ("a", "default", {"name": "Ω"}) == (failed.id, failed.queue, decode(failed.payload.encode(), 0).data)
    assert failed.exception.startswith("ValueError: \\xe4\\xe4")
    assert len(failed.exception) < 40_000
    assert 0 == sql.queue.sizes("default").total


def test_a_failure_that_no_record_can_hold_is_set_aside(redis_url, server: redis.Redis):
    server.set(f"{PREFIX}queuepool:failed", "no hash")
    with closing(Stores(ConnectionSettings(url=redis_url, prefix=PREFIX))) as stores:
        assert ["StoreRefused", "JobQuarantined", "JobFailed"] == settled(stores)
        assert ["unrecorded"] == [entry.reason for entry in stores.records.quarantined("default")]
        assert 0 == stores.queue.sizes("default").total


def test_one_in_another_store_is_made_plainer_too(database, redis_url):
    apart = dataclasses.replace(database, url=redis_url, failed_url=database.url, embedded=False)
    with opened(database) as tables, closing(Stores(apart)) as stores:
        narrow(tables)
        assert ["JobFailed"] == settled(stores)
        assert stores.forwarder
        assert (0, "") == (stores.forwarder.forward(), stores.forwarder.problem)
        assert ["a"] == [failed.id for failed in stores.failed.page()]
