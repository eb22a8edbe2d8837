"""Our own texts in a store, which others can write, too: what is damaged counts as missing and harms nothing else.

Each store gets all the texts, one after the other.
"""

from __future__ import annotations

import json

import pytest
from sqlalchemy import update

from queuepool.errors import StoreError
from queuepool.jobs.following import found
from queuepool.payload.lease import StateRecord
from queuepool.stores.contract import NOTICE_KEPT, NewJob
from queuepool.stores.factory import Stores, is_redis
from queuepool.stores.values import MAX_STATE, MAX_VALUE, Due, Mark
from tests.support.each import each
from tests.support.samples import fresh, new_jobs, payload

NOW = 1_764_000_000
#: whoever reads each of its quotes as the beginning of a text reads for minutes
HOSTILE = "[" * 1100 + '"' + '\\"' * 30_000
#: no object, or not in JSON
TEXTS = ["garbage", "5", "null", "[]", "{", "{}", "", "[" * 150, '"']


def overwrite(built: Stores, place: str, name: str, text: str) -> None:
    """Put the text in the place of one of ours: in a hash of Redis, or in the table's row whose key has this name."""
    if is_redis(built.settings.url):
        built.client.command("HSET", getattr(built.queue.keys, place), name, text)
        return
    marks, values = built.client.tables.cache_locks, built.client.tables.cache
    change = {
        "schedules": update(marks).where(marks.c.key.contains(f":{name}#")).values(owner=text),
        "pools": update(values).where(values.c.key.endswith(f":{name}")).values(value=text),
    }[place]
    assert 1 == built.client.ask(lambda connection: connection.execute(change).rowcount)


@pytest.mark.bad_input("B168")
@each(
    "text",
    [*TEXTS, HOSTILE, '{"at": "x", "host": "b", "pool": "c"}', '{"at": 1e30, "host": "b", "pool": "c"}', '{"at": 1}'],
)
def test_a_damaged_notice_is_left_out(built, text):
    built.control.publish("a:default:1", {"host": "a", "pool": "default"})
    built.control.publish("b:default:1", {"host": "b", "pool": "default"})
    overwrite(built, "pools", "b:default:1", text)

    assert ["a"] == [notice["host"] for notice in built.control.pools(NOTICE_KEPT)]


@pytest.mark.bad_input("B168")
def test_a_notice_from_the_future_is_left_out_or_counts_as_of_now(built):
    """Those who compare notices take the latest for the present time."""
    for host in "abc":
        built.control.publish(f"{host}:default:1", {"host": host, "pool": "default"})
    now = int(built.control.pools()[0]["at"])
    overwrite(built, "pools", "b:default:1", json.dumps({"host": "b", "pool": "default", "at": now + 3600}))
    overwrite(built, "pools", "c:default:1", json.dumps({"host": "c", "pool": "default", "at": now + 50}))
    found = {notice["host"]: notice["at"] for notice in built.control.pools(NOTICE_KEPT)}

    assert ["a", "c"] == list(found)
    assert now <= found["c"] < now + 50


@pytest.mark.bad_input("B168")
def test_a_notice_that_is_too_large_is_not_read(built):
    for host in "abc":
        built.control.publish(f"{host}:default:1", {"host": host, "pool": "default"})
    now = int(built.control.pools()[0]["at"])
    overwrite(built, "pools", "b:default:1", json.dumps({"host": "b", "pool": "default", "at": now, "x": "x" * 2**20}))

    assert ["a", "c"] == [notice["host"] for notice in built.control.pools(NOTICE_KEPT)]


@pytest.mark.bad_input("B168")
def test_of_a_control_key_only_the_start_is_read(built):
    built.control.restart()
    name, long = built.settings.restart_key, "9" * 2**20
    if is_redis(built.settings.url):
        built.client.command("SET", name, long)
    else:
        values = built.client.tables.cache
        changed = update(values).where(values.c.key == name).values(value=long)
        assert 1 == built.client.ask(lambda connection: connection.execute(changed).rowcount)

    assert "9" * MAX_VALUE == built.control.read(["default"]).restart
    built.control.restart()
    assert len(built.control.read(["default"]).restart) < 20


@pytest.mark.bad_input("B169")
@each(
    "text",
    [
        *TEXTS,
        '{"settled": "x", "rule": "r"}',
        '{"settled": 1e300, "rule": "r"}',
        '{"settled": 1, "rule": 1}',
        '{"settled": 1.5, "rule": "r"}',
        '{"settled": -1, "rule": "r"}',
    ],
)
def test_a_damaged_mark_of_a_schedule_counts_as_none_and_the_others_go_on(built, text):
    built.queue.push("elsewhere", new_jobs(payload("x")))  # a pool reads the tables before it fires
    rules = {"nightly": "r", "hourly": "r"}
    for name in rules:
        built.values.forget(name)
    built.values.begin(rules, NOW)
    overwrite(built, "schedules", "nightly", text)

    assert built.values.fire(Due("nightly", NOW + 60, "reports", payload("a"))) is None
    assert {"hourly": Mark(NOW, "r")} == built.values.marks()
    assert {"nightly": Mark(NOW + 5, "r"), "hourly": Mark(NOW, "r")} == built.values.begin(rules, NOW + 5)
    assert NOW + 60 == built.values.fire(Due("nightly", NOW + 60)).before.settled + 55


@pytest.mark.bad_input("B170")
@each(
    "text",
    [
        *TEXTS,
        HOSTILE,
        '{"state": 5}',
        '{"state": "running", "until": "x"}',
        '{"state": "delayed", "due": "x"}',
        '{"state": "done", "result": "{"}',
        '{"state": "done", "result": 5}',
        json.dumps({"state": "done", "result": "[" * 100_000}),
        json.dumps({"state": "done", "name": "x" * MAX_STATE}),
    ],
)
def test_a_damaged_state_of_a_job_is_one_error(built, text):
    name = fresh("job")
    built.queue.push("default", [NewJob(payload(name), StateRecord(name, text.encode(), 60.0))])

    if text:  # an empty one is none
        with pytest.raises(StoreError, match=f"the stored state of job {name} cannot be read"):
            found(built, name)


def test_a_state_may_name_another_job(built):
    built.queue.push("default", [NewJob(payload("a"), StateRecord("a", b'{"state": "done", "id": "b"}', 60.0))])

    assert ("a", "done") == (found(built, "a").id, found(built, "a").state)
