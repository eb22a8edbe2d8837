"""What the steps of a job have returned is kept with the job: written under its lease, and forgotten with its end."""

from __future__ import annotations

import pytest

from queuepool.payload.kept_step import CURSOR, MOST_BYTES, MOST_KEPT, MOST_NAME, StepsEnd
from queuepool.payload.lease import Ending
from tests.support.kept_attempts import kept, noted
from tests.support.samples import ids, payload, record
from tests.support.store_contract import OURS, RETRY_AFTER, THEIRS, reserved

pytestmark = pytest.mark.usefixtures("at")

STEPS = {"charge": b'{"id":1}', "ship:7": b"null"}
#: verbs after which the job may be tried again, so that its steps stay
AGAIN = {
    "release": lambda store, lease: store.release(lease, 0.0, "a", "exceptions"),
    "release later": lambda store, lease: store.release(lease, 9.0, "a"),
    "fail": lambda store, lease: store.fail(lease, "a", record(lease)),
    "give back": lambda store, lease: store.give_back([lease])[0],
}


def test_what_was_kept_is_there_for_the_next_attempt(built):
    [lease] = reserved(built.queue, payload("a"))

    assert {} == built.steps.of_job("a")
    assert built.steps.keep(lease, "a", STEPS)
    assert built.steps.keep(lease, "a", {f"{CURSOR}rows": b"41"})
    assert built.steps.keep(lease, "a", {f"{CURSOR}rows": b"42"})
    assert {**STEPS, f"{CURSOR}rows": b"42"} == built.steps.of_job("a")
    assert {} == built.steps.of_job("A")


def test_names_may_be_any_text_and_are_told_apart_by_their_bytes(built):
    [lease] = reserved(built.queue, payload("a"))
    names = ["a", "A", "a ", " a", "ä", "a\0b", "\N{GRINNING FACE}", "x" * MOST_NAME, CURSOR + "y" * MOST_NAME]
    values = {name: b"%d" % number for number, name in enumerate(names)}

    assert built.steps.keep(lease, "a", values)
    assert values == built.steps.of_job("a")


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("job_id", ["x" * 500, "ä" * 100, "a\0b", "'; --"], ids=["long", "wide", "nul", "quoted"])
def test_ids_may_be_any_text(built, job_id):
    [lease] = reserved(built.queue, payload("a"))

    assert built.steps.keep(lease, job_id, STEPS)
    assert STEPS == built.steps.of_job(job_id)
    assert {} == built.steps.of_job(job_id[:-1])


@pytest.mark.thorough("sizes; test_what_was_kept_is_there_for_the_next_attempt")
def test_as_much_is_kept_as_a_job_may_have(built):
    [lease] = reserved(built.queue, payload("a"))
    many = {f"s{number}": b"1" for number in range(MOST_KEPT // 10)}

    assert built.steps.keep(lease, "a", {"large": b'"%s"' % (b"x" * (MOST_BYTES - 2))})
    assert built.steps.keep(lease, "a", many)
    assert {*many, "large"} == {*built.steps.of_job("a")}
    assert MOST_BYTES == len(built.steps.of_job("a")["large"])


def test_only_the_holder_of_the_lease_keeps_anything(built, at):
    [late] = reserved(built.queue, payload("a"))
    at.advance(RETRY_AFTER + 1)
    [theirs] = built.queue.reserve(["default"], THEIRS, 1).leases

    assert not built.steps.keep(late, "a", {"charge": b"1"})
    assert {} == built.steps.of_job("a")
    assert built.steps.keep(theirs, "a", {"charge": b"2"})
    assert not built.steps.keep(late, "a", {"charge": b"1"})
    assert {"charge": b"2"} == built.steps.of_job("a")


def test_they_are_forgotten_in_the_step_that_finishes_the_job(built, at):
    [late] = reserved(built.queue, payload("a"))
    at.advance(RETRY_AFTER + 1)
    [lease] = built.queue.reserve(["default"], THEIRS, 1).leases
    assert built.steps.keep(lease, "a", STEPS)

    end = StepsEnd("a", forget=True)
    assert not built.queue.finish(late._replace(steps=end), Ending())
    assert STEPS == built.steps.of_job("a")
    assert built.queue.finish(noted(lease._replace(steps=end)), Ending())
    assert {} == built.steps.of_job("a")
    assert 1 == len([one for one in kept(built) if not one.is_lost])


@pytest.mark.by_turns("records")
@pytest.mark.every_store("connection")
@pytest.mark.parametrize("end", AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("records", [False, True], ids=["alone", "with a record"])
def test_they_stay_with_a_job_that_may_be_tried_again(built, end, records):
    [lease] = reserved(built.queue, payload("a"))
    assert built.steps.keep(lease, "a", STEPS)
    lease = lease._replace(steps=StepsEnd("a", places=((f"{CURSOR}rows", b"[7]"),)))

    assert end(built.queue, noted(lease) if records else lease)
    assert {**STEPS, f"{CURSOR}rows": b"[7]"} == built.steps.of_job("a")


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("end", AGAIN.values(), ids=AGAIN)
def test_a_lost_lease_says_nothing_of_how_far_a_cursor_is(built, at, end):
    [late] = reserved(built.queue, payload("a"))
    at.advance(RETRY_AFTER + 1)
    [theirs] = built.queue.reserve(["default"], THEIRS, 1).leases
    assert built.steps.keep(theirs, "a", {f"{CURSOR}rows": b"9"})

    assert not end(built.queue, late._replace(steps=StepsEnd("a", places=((f"{CURSOR}rows", b"7"),))))
    assert {f"{CURSOR}rows": b"9"} == built.steps.of_job("a")


def test_a_job_that_ends_without_a_word_of_steps_leaves_those_of_others_alone(built):
    [lease] = reserved(built.queue, payload("a"))
    [other] = reserved(built.queue, payload("b"))
    assert built.steps.keep(lease, "a", STEPS)

    assert built.queue.finish(other._replace(steps=StepsEnd("b", forget=True)), Ending())
    assert built.queue.finish(lease, Ending())
    assert STEPS == built.steps.of_job("a")


def test_a_failed_job_that_is_retried_finds_them(built):
    [lease] = reserved(built.queue, payload("a"))
    assert built.steps.keep(lease, "a", STEPS)
    assert built.queue.fail(lease._replace(steps=StepsEnd("a")), "a", record(lease))

    failed = built.failed.get("a")
    assert built.failed.retry(failed)
    assert ["a"] == ids(built.queue.reserve(["default"], OURS, 1).leases)
    assert STEPS == built.steps.of_job("a")


def test_one_of_them_is_forgotten_by_its_name(built):
    [lease] = reserved(built.queue, payload("a"))
    assert built.steps.keep(lease, "a", STEPS)

    assert built.steps.forget("a", "charge")
    assert not built.steps.forget("a", "charge")
    assert not built.steps.forget("b", "ship:7")
    assert {"ship:7": b"null"} == built.steps.of_job("a")


def test_the_places_of_several_cursors_are_written_with_the_end_of_the_lease(built):
    places = ((f"{CURSOR}rows", b"7"), (f"{CURSOR}others", b'"x"'), (f"{CURSOR}last", b"[1,2]"))
    [lease] = reserved(built.queue, payload("a"))
    assert built.steps.keep(lease, "a", STEPS)

    assert built.queue.release(lease._replace(steps=StepsEnd("a", places=places)), 0.0, "a", "exceptions")
    assert {**STEPS, **dict(places)} == built.steps.of_job("a")
    assert 1 == built.queue.tallies("a").exceptions
