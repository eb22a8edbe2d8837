"""A real Laravel whose configuration names other tables, and ours that names the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from queuepool.stores.factory import Stores
from tests.support.drivers import DATABASES, bare_connection_of, opened
from tests.support.laravel_peer import Peer, require_php
from tests.support.shared_tables import BRANDS, REPORT
from tests.support.store_contract import OURS, failed_job

NAMES = {"jobs_table": "Order", "failed_table": "lost_jobs", "cache_table": "kept"}
thorough = pytest.mark.thorough(
    "the names are these in a schema too, and on each database in stores/test_table_names.py"
)
PLACES = [*(pytest.param((database, ""), marks=thorough) for database in DATABASES), ("postgres", "own")]


@pytest.fixture(params=PLACES, ids=lambda place: " ".join(place).strip())
def settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ConnectionSettings:
    database, schema = request.param
    require_php(BRANDS[database][0])
    place = f"{schema}." if schema else ""
    for variable, key in {"QP_JOBS": "jobs_table", "QP_FAILED": "failed_table", "QP_CACHE": "cache_table"}.items():
        monkeypatch.setenv(variable, place + NAMES[key])
    return replace(
        bare_connection_of(database, request), **NAMES, schema=schema, restart_key="app_illuminate:queue:restart"
    )


@pytest.fixture
def stores(settings: ConnectionSettings) -> Iterator[Stores]:
    with opened(settings) as built:
        yield built


def test_each_runs_what_the_other_has_pushed_and_both_see_the_failed_jobs(settings, stores, tmp_path):
    peer, queue = Peer.on(settings.url, tmp_path / "laravel.jsonl"), Queue(settings)
    peer.run("push-string", REPORT, '{"id": 7}')
    [lease] = stores.queue.reserve(["default"], OURS, 1).leases
    assert {"id": 7} == decode(lease.receipt, 0).data
    assert [True] == stores.queue.delete([lease])

    queue.push(REPORT, {"id": 8})
    peer.run("work", once=True)
    assert [{"id": 8}] == [line["data"] for line in peer.lines() if "job" in line]
    assert 0 == queue.size()

    failed = failed_job(stores)
    assert [failed.id] == [row["id"] for row in peer.run("failed")["rows"]]

    before = stores.control.read(["default"]).restart
    peer.run("restart", cache_prefix="app_")
    assert before != stores.control.read(["default"]).restart
    queue.close()
