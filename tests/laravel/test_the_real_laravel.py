"""The real Laravel behaves on each database as the other tests assume."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer, require_php

pytestmark = pytest.mark.every_store("brand", "shape")

REPORT = "App\\Jobs\\Report@build"
MAIL = "App\\Jobs\\SendMail"
FOREVER = 315_360_000
#: seconds from a row's creation until it is due: Laravel reads the clock for each, first for the latter
A_MINUTE = (59, 60)
PDO = {"sqlite": "sqlite", "postgres": "pgsql", "mariadb": "mysql"}
DRIVERS = {"sqlite": "pysqlite", "postgres": "psycopg", "mariadb": "pymysql"}


@dataclass(frozen=True, slots=True)
class Database:
    """What a peer works on, to look at behind its back."""

    brand: str
    engine: Engine

    def rows(self, table: str) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]

    def columns(self, table: str) -> list[str]:
        return [column["name"] for column in inspect(self.engine).get_columns(table)]

    def indices(self, table: str) -> set[tuple[str, ...]]:
        return {tuple(filter(None, index["column_names"])) for index in inspect(self.engine).get_indexes(table)}


@pytest.fixture(params=DRIVERS)
def brand(request):
    require_php(PDO[request.param])
    return request.param


@pytest.fixture
def url(brand, request):
    return request.getfixturevalue(f"{brand}_url")


@pytest.fixture
def database(brand, url):
    return Database(brand, create_engine(url.replace("://", f"+{DRIVERS[brand]}://", 1), poolclass=NullPool))


@pytest.fixture
def empty(url, tmp_path):
    """A Laravel application before its first migration."""
    return Peer.on(url, tmp_path / "laravel.jsonl")


@pytest.fixture
def peer(empty):
    empty.run("migrate")
    return empty


def runs(peer: Peer) -> list[dict[str, Any]]:
    return [line for line in peer.lines() if "job" in line]


def as_text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


# Tables


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
@pytest.mark.parametrize("shape", [8, 13])
def test_the_tables_have_the_columns_of_laravel(empty, database, shape):
    empty.run("migrate", shape=shape)

    assert {
        "jobs": ["id", "queue", "payload", "attempts", "reserved_at", "available_at", "created_at"],
        "failed_jobs": ["id", "uuid", "connection", "queue", "payload", "exception", "failed_at"],
        "cache": ["key", "value", "expiration"],
    } == {table: database.columns(table) for table in ("jobs", "failed_jobs", "cache")}


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_the_tables_of_13_have_indices_that_those_of_8_have_not(peer, database):
    before = database.indices("failed_jobs") | database.indices("cache")
    with database.engine.begin() as connection:
        for table in ("jobs", "failed_jobs", "cache", "cache_locks"):
            connection.execute(text(f"DROP TABLE {table}"))

    peer.run("migrate", shape=13)

    after = database.indices("failed_jobs") | database.indices("cache")
    assert {("connection", "queue", "failed_at"), ("expiration",)} == after - before


# Jobs


@pytest.mark.parametrize("shape", [8, 13])
def test_a_pushed_job_is_run_and_its_row_is_gone(empty, database, shape):
    empty.run("migrate", shape=shape)
    identity = empty.run("push-string", REPORT, '{"id": 7, "name": "é"}')["id"]
    [row] = database.rows("jobs")

    empty.run("work", once=True)

    assert (identity, "default", 0, None) == (row["id"], row["queue"], row["attempts"], row["reserved_at"])
    assert [({"id": 7, "name": "é"}, 1)] == [(run["data"], run["attempts"]) for run in runs(empty)]
    assert ([], {"size": 0}) == (database.rows("jobs"), empty.run("size"))


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_jobs_are_run_in_the_order_of_their_queues_and_then_of_their_rows(peer):
    for number, queue in enumerate(["low", "high", "low", "high"]):
        peer.run("push-string", REPORT, f'{{"id": {number}}}', queue=queue)

    peer.run("work", stop_when_empty=True, queue="high,low")

    assert [1, 3, 0, 2] == [run["data"]["id"] for run in runs(peer)]


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_a_delayed_object_job_is_run_when_it_is_due(peer, database):
    peer.run("push-object", "a@b.c", "vip", delay=60, queue="mails")
    peer.run("work", once=True, queue="mails")
    early = runs(peer)
    [row] = database.rows("jobs")

    with database.engine.begin() as connection:
        connection.execute(text("UPDATE jobs SET available_at = available_at - 60"))
    peer.run("work", once=True, queue="mails")

    assert [] == early
    assert row["available_at"] - row["created_at"] in A_MINUTE
    assert [{"job": MAIL, "to": "a@b.c", "template": "vip", "attempts": 1, "queue": "mails"}] == runs(peer)


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_a_held_job_is_given_to_nobody_else_until_its_lease_has_ended(peer, database):
    identity = peer.run("push-string", REPORT)["id"]

    held = peer.run("reserve-hold")
    [row] = database.rows("jobs")

    early = peer.run("reserve-hold", retry_after=90)
    late = peer.run("reserve-hold", retry_after=0)
    assert {"id": identity, "attempts": 1, "raw": row["payload"], "reserved_at": row["reserved_at"]} == held
    assert (None, identity, 2) == (early["id"], late["id"], late["attempts"])


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_a_released_job_is_a_new_row_at_the_back_that_keeps_its_attempts(peer, database):
    first, second = (peer.run("push-string", REPORT, str(number))["id"] for number in range(2))

    released = peer.run("release-one", delay=60)

    behind, moved = sorted(database.rows("jobs"), key=lambda row: int(row["id"]))
    assert (first, second) == (released["id"], behind["id"])
    assert second < moved["id"]
    assert (1, None) == (moved["attempts"], moved["reserved_at"])
    assert moved["available_at"] - moved["created_at"] in A_MINUTE


def test_orders_are_obeyed_at_the_second_that_they_name(peer, database):
    raw = '{"uuid": "u", "job": "J"}'
    with peer.serving() as talk:
        talk.ask("push", now=1000, queue="q", raw=raw)
        talk.ask("later", now=1000, queue="q", raw=raw, delay=5)
        first = talk.ask("pop", now=1001, queue="q")
        none = talk.ask("pop", now=1004, queue="q")["id"]
        second = talk.ask("pop", now=1005, queue="q")
        talk.ask("delete", now=1005, queue="q", **first)
        talk.ask("release", now=1005, queue="q", delay=3, **second)
        size = talk.ask("size", now=1005, queue="q")

    assert ((1, 1001), None, (1, 1005), 1) == (
        (first["attempts"], first["reserved_at"]), none, (second["attempts"], second["reserved_at"]), size
    )  # fmt: skip
    assert [(1, 1008, 1005, raw)] == [
        (row["attempts"], row["available_at"], row["created_at"], row["payload"]) for row in database.rows("jobs")
    ]


# Failed jobs


@pytest.mark.parametrize("shape", [8, 13])
def test_a_job_that_failed_for_good_is_a_row_of_failed_jobs(empty, database, shape):
    empty.run("migrate", shape=shape)
    empty.run("push-string", REPORT, '{"fail_times": 9}', queue="high")
    [job] = database.rows("jobs")

    empty.run("work", once=True, queue="high", tries=1)

    [row] = database.rows("failed_jobs")
    assert ("default", "high", job["payload"]) == (row["connection"], row["queue"], row["payload"])
    assert row["exception"].startswith("RuntimeException: told to fail in ")
    assert [row["uuid"]] == [failed["id"] for failed in empty.run("failed")["rows"]]
    assert [] == database.rows("jobs")


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_a_retried_job_is_run_again_as_a_first_attempt_and_failed_no_more(peer, database):
    peer.run("push-string", REPORT, '{"fail_times": 1}')
    peer.run("work", once=True, tries=1)
    [row] = peer.run("failed")["rows"]

    said = peer.run("retry", row["id"])["said"]
    [again] = database.rows("jobs")
    peer.run("work", once=True, tries=1)

    assert (0, row["payload"]) == (again["attempts"], again["payload"])
    assert "pushed back" in said
    assert [1, 1] == [run["attempts"] for run in runs(peer)]
    # It failed once more: its first attempt was to fail.
    assert [row["id"]] == [failed["uuid"] for failed in database.rows("failed_jobs")]


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_a_retry_sets_back_the_attempts_that_a_payload_of_redis_has(peer, database):
    peer.run("push-string", REPORT, '{"fail_times": 1}')
    peer.run("work", once=True, tries=1)
    [row] = peer.run("failed")["rows"]
    with database.engine.begin() as connection:
        spliced = {"payload": row["payload"][:-1] + ',"id":"x","attempts":3}'}
        connection.execute(text("UPDATE failed_jobs SET payload = :payload"), spliced)

    peer.run("retry", row["id"])

    assert database.rows("jobs")[0]["payload"].endswith(',"id":"x","attempts":0}')
    assert [] == database.rows("failed_jobs")


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_nothing_is_retried_that_did_not_fail(peer, database):
    assert "Unable to find" in peer.run("retry", "nobody")["said"]
    assert [] == database.rows("jobs")


# Cache


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_a_restart_makes_a_worker_leave_in_order(peer):
    with peer.staying("work", sleep=0.05) as worker:
        peer.run("push-string", REPORT)
        eventually(lambda: runs(peer))

        peer.run("restart")

        assert ('{"status":0}\n', 0) == (worker.communicate(timeout=60)[0], worker.returncode)


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_the_stamp_of_a_restart_is_a_serialized_integer_kept_for_ten_years(peer, database):
    restart = peer.run("restart", cache_prefix="own_")

    [row] = database.rows("cache")
    assert ["own_illuminate:queue:restart"] == restart["keys"] == [row["key"]]
    assert f"i:{restart['value']};" == row["value"]
    assert 0 <= row["expiration"] - FOREVER - restart["value"] <= 1


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_values_are_kept_serialized(peer, database):
    for value in ["true", "7", '"é"', '"a:b"']:
        peer.run("cache-put", value, value, cache_prefix="")

    kept = {row["key"]: as_text(row["value"]) for row in database.rows("cache")}
    assert {"true": "b:1;", "7": "i:7;", '"é"': 's:2:"é";', '"a:b"': 's:3:"a:b";'} == kept


def encoded(brand: str) -> Callable[[str], str]:
    return (lambda kept: base64.b64encode(kept.encode()).decode()) if "postgres" == brand else str


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_a_value_with_a_null_byte_is_kept_in_base64_where_the_database_could_not_hold_it(peer, database):
    peer.run("cache-put", "key", '"a\\u0000b"')

    [row] = database.rows("cache")
    assert encoded(database.brand)('s:3:"a\0b";') == as_text(row["value"])
    assert {"value": "a\0b"} == peer.run("cache-get", "key")


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_an_expired_value_is_none_and_its_row_is_removed_by_who_looks(peer, database):
    peer.run("cache-put", "key", "7", seconds=60)
    before = peer.run("cache-get", "key")["value"]
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE cache SET expiration = :now"), {"now": int(time.time())})

    assert (7, None) == (before, peer.run("cache-get", "key")["value"])
    assert [] == database.rows("cache")


@pytest.mark.thorough("of Laravel alone: what ours makes of it is in the tests of its tables")
def test_a_value_under_another_prefix_is_not_seen(peer):
    peer.run("cache-put", "key", "7", cache_prefix="ours_")

    assert {"value": None} == peer.run("cache-get", "key", cache_prefix="theirs_")
    assert {"value": 7} == peer.run("cache-get", "ours_key", cache_prefix="")
