"""What a record of an attempt says, and what is read of it again."""

from __future__ import annotations

import json
from typing import Any

from queuepool.errors import Cancelled
from queuepool.events import JobCancelled, JobLost, JobTimedOut
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease, LeaseRow
from queuepool.search.ended import EachOnce, EndedAttempt
from queuepool.search.ended import read as read_all
from queuepool.settlement.attempts import AttemptRecords
from queuepool.settlement.facts import facts_of
from queuepool.settlement.verdict import Delete, Fail, RanBy, Release, Run
from queuepool.stores.attempts import KeptAttempt
from tests.support.each import each
from tests.support.samples import payload

RAW = payload("a", attempts=2)
PAYLOAD = decode(RAW)
LEASE = Lease("default", RAW, 7)
RECORDS = AttemptRecords(60.0, "main", RanBy(11, 3, 5, 1000.0))
FACTS = facts_of(PAYLOAD, "default")
RAN = Run(began=2000.0, ended=2001.5)


def said(lease: Lease) -> dict[str, Any]:
    record = lease.record
    assert record
    assert ("a", 60.0) == (record.job_id, record.seconds)
    assert (record.text + record.by).isascii()
    assert "\n" not in record.text + record.by
    assert LEASE == lease._replace(record=None, row=None)
    found: dict[str, Any] = json.loads(f"{{{record.text}{record.by}}}")
    assert found["host"]
    return found


def read(lease: Lease, raw: bytes = b"") -> EndedAttempt:
    found = EndedAttempt.parsed(KeptAttempt("default", json.dumps(said(lease)).encode(), raw))
    assert found
    return found


BY = {"pool": "main", "pid": 11, "worker": 3, "generation": 5, "pool_since": 1000.0}
JOB = {"id": "a", "name": "app.ok", "attempt": 2}
DONE = RECORDS.done(LEASE, PAYLOAD, 2000.0, 1.5)


def test_of_a_job_that_is_done_it_says_no_more_than_its_payload_does_not_tell():
    assert {"began": 2000.0, "seconds": 1.5, **BY} == {key: one for key, one in said(DONE).items() if key != "host"}


def test_where_a_row_counts_the_attempts_or_the_payload_is_not_kept_it_says_what_the_job_was():
    in_a_row = RECORDS.done(LEASE._replace(row=LeaseRow(1, 2)), PAYLOAD, 2000.0, 1.5)
    assert JOB.items() <= said(in_a_row).items()
    nameless = decode(b'{"job":"app.ok","data":7}')
    unread = RECORDS.done(LEASE, nameless, 2000.0, 1.5).record
    assert unread
    assert nameless.id in unread.text


def test_both_ways_to_say_that_it_is_done_are_read_as_the_same():
    found = read(DONE, RAW)

    assert found == read(RECORDS.settled(LEASE, PAYLOAD, RAN, Delete(), None, None), RAW)
    assert ("a", "app.ok", 2, "done", 2001.5) == (found.id, found.name, found.attempts, found.outcome, found.ended)


ERROR = ValueError("as asked")
KINDS = {
    "done": (Delete(), None, None, {"outcome": "done"}),
    "retried": (Release(3.0), None, ERROR, {"outcome": "released", "error": "ValueError: as asked"}),
    "failed": (Fail(ERROR), None, None, {"outcome": "failed", "error": "ValueError: as asked"}),
    "died": (Release(0.0), JobLost(FACTS, "", ""), ERROR, {"outcome": "lost", "then": "released"}),
    "late": (Fail(ERROR), JobTimedOut(FACTS, ""), ERROR, {"outcome": "timed out", "then": "failed"}),
    "cancelled": (Fail(ERROR), JobCancelled(FACTS, "me"), None, {"outcome": "cancelled", "then": "failed"}),
    "cancelled itself": (Fail(Cancelled("so")), None, None, {"outcome": "cancelled", "then": "failed"}),
}


@each(["verdict", "cause", "error", "expected"], KINDS.values())
def test_it_says_how_the_attempt_ended_and_what_became_of_the_job(verdict, cause, error, expected):
    found = said(RECORDS.settled(LEASE, PAYLOAD, RAN, verdict, cause, error))

    assert expected.items() <= found.items()
    assert ("then" in expected) is ("then" in found)


def test_a_skipped_job_has_not_run():
    found = said(RECORDS.settled(LEASE, PAYLOAD, Run(began=1.0, cancelled="batch"), Delete(), None, None))

    assert ("skipped", "done") == (found["outcome"], found["then"])


def test_of_another_process_it_says_that_one():
    found = said(RECORDS.settled(LEASE, PAYLOAD, Run(by=RanBy(12, 4, 6)), Delete(), None, None))

    assert (12, 4, 6) == (found["pid"], found["worker"], found["generation"])
    assert not {"began", "seconds", "pool_since"} & {*found}


def test_of_an_end_that_nobody_saw_it_says_no_duration():
    found = said(RECORDS.settled(LEASE, PAYLOAD, Run(began=2000.0), Release(0.0), JobLost(FACTS, "", ""), None))

    assert 2000.0 == found["began"]
    assert "seconds" not in found


def kept_as(lease: Lease, *, is_lost: bool = False) -> KeptAttempt:
    assert lease.record
    return KeptAttempt("default", f"{{{lease.record.text}{lease.record.by}}}".encode(), RAW, is_lost)


#: what a worker had done: as the steward that has taken it says, and as the worker does, which was refused
TAKEN, REFUSED = kept_as(RECORDS.done_by(LEASE, RanBy(11, 3, 5, 1000.0))), kept_as(DONE, is_lost=True)
#: what the steward says of what the worker had deleted
SPARE = TAKEN._replace(is_lost=True)
SETTLED = kept_as(DONE)


@each("records", [[TAKEN, REFUSED], [REFUSED, TAKEN], [REFUSED, SETTLED], [SETTLED, SPARE], [SETTLED, SETTLED]])
def test_of_the_records_of_one_attempt_the_one_with_its_times_counts_and_it_was_not_lost(records):
    [one] = read_all(records)

    assert ("done", 2000.0, 1.5, False) == (one.outcome, one.began, one.seconds, one.is_lost)


def test_what_was_really_lost_is_shown_as_lost():
    assert [True] == [one.is_lost for one in read_all([REFUSED])]
    assert [] == read_all([SPARE])


def test_a_worker_that_died_after_its_settlement_has_settled_it():
    retried = kept_as(RECORDS.settled(LEASE, PAYLOAD, RAN, Release(3.0), None, ERROR))
    by_the_steward = Run(began=2000.0, by=RanBy(11, 3, 5, 1000.0))
    died = kept_as(
        RECORDS.settled(LEASE, PAYLOAD, by_the_steward, Release(0.0), JobLost(FACTS, "", ""), None), is_lost=True
    )

    assert [("released", False)] == [(one.outcome, one.is_lost) for one in read_all([retried, died])]


def test_a_job_that_was_given_back_to_the_worker_that_had_it_has_two_attempts_with_one_number():
    stopped = kept_as(RECORDS.given_back(LEASE, PAYLOAD, RAN, is_cancelled=True))
    later = kept_as(
        RECORDS.settled(LEASE, PAYLOAD, Run(began=2009.0, ended=2010.0), Delete(), None, None), is_lost=True
    )

    assert [("cancelled", False), ("done", True)] == [(one.outcome, one.is_lost) for one in read_all([stopped, later])]


def test_a_payload_that_was_written_over_has_a_record_too():
    assert RECORDS.done_by(LEASE._replace(receipt=b"{"), RanBy(11, 3, 5)).record


def other(began: float) -> KeptAttempt:
    return KeptAttempt("default", json.dumps({"id": "b", "began": began, "seconds": 1.0}).encode(), b"")


@each(["pages", "expected"], [
    ([[REFUSED], [SETTLED]], [("a", False)]),
    ([[REFUSED], [other(2002.0)], [TAKEN]], [("b", False), ("a", False)]),
    ([[SETTLED], [REFUSED]], [("a", False)]),
    ([[SETTLED], [SETTLED]], [("a", False)]),
    ([[REFUSED], []], [("a", True)]),
    ([[REFUSED], [REFUSED], [other(1000.0)], [other(999.0)]], [("a", True), ("b", False), ("b", False)]),
])  # fmt: skip
def test_page_by_page_each_is_found_once(pages, expected):
    each_once, found = EachOnce(), list[EndedAttempt]()
    for page in pages:
        found += reversed(each_once.page(page))
    found += each_once.rest()

    assert expected == [(one.id, one.is_lost) for one in found]


DAMAGED = [
    b"", b"7", b"[]", b"{}", b'{"id": "a"}', b'{"ended": "x", "id": "a"}', b'{"id": 7, "ended": 1.0}', b"[" * 99_999,
]  # fmt: skip


@each("text", DAMAGED)
def test_what_is_damaged_is_not_read(text):
    assert EndedAttempt.parsed(KeptAttempt("default", text, b"")) is None


def test_what_is_unknown_or_of_another_kind_is_left_out():
    text = b'{"id": "a", "ended": 1.0, "pid": "x", "raw": "y", "queue": 7, "later": [], "attempt": "z"}'

    assert EndedAttempt(id="a", queue="default", ended=1.0, raw=text) == EndedAttempt.parsed(
        KeptAttempt("default", text, b"")
    )
