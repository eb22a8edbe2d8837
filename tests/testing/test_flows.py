"""Flows as an application writes and tests them: what runs, in which order, with which results; and wrong ones."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from queuepool import Flow, Job, chain, current, group, job, result, results
from queuepool.errors import NoSuchFlow, NotSendable
from queuepool.events import FlowFailed, FlowFinished, JobProcessed
from queuepool.events.listeners import LISTENERS
from queuepool.jobs.calls import Taken
from queuepool.jobs.composing import flow_of
from queuepool.jobs.flows import _new_id
from queuepool.payload.members import MOST_MEMBERS, MOST_TAKEN
from queuepool.testing import as_current, drain, fake, run_now

NOON = datetime(2040, 1, 1, 12, tzinfo=UTC)
ran: list[object] = []


@dataclass
class Photo:
    path: str
    width: int


@job("flows.resize")
def resize(path: str) -> Photo:
    ran.append(path)
    return Photo(path, len(path))


@job("flows.publish")
def publish(order: int, photos: list[Photo], title: str = "") -> str:
    ran.append((order, photos, title))
    return f"page {order}"


@job("flows.say")
def say(words: object = None) -> None:
    ran.append(words)


@job("flows.count")
async def count(path: str) -> int:
    return len(path)


@job("flows.fails", tries=1)
def fails() -> None:
    raise ValueError("as asked")


@job("flows.split")
def split(parts: int) -> None:
    for number in range(parts):
        current().flow.add(say.call(f"part {number}"))


@job("flows.once", unique="all")
def once() -> None: ...


@job("flows.secret", encrypted=True)
def secret() -> str:
    return "secret"


@job("flows.places")
def places(*paths: str) -> None: ...


@job("flows.anything")
def anything(**given: object) -> None: ...


@job("flows.soon", expires=1)
def soon() -> None: ...


class Send(Job):
    to: str

    def handle(self) -> None:
        ran.append(f"to {self.to}")


@pytest.fixture(autouse=True)
def forgotten() -> None:
    ran.clear()


def test_results_are_read_by_the_annotations_of_those_that_take_them():
    with run_now():
        flow = Flow("album")
        photos = [flow.add(resize.call(path)) for path in ("a", "bb")]
        page = flow.add(publish.call(7, photos=results(photos), title="all"))
        flow.add(say.call(words=result(page)))
        found = flow.dispatch()

        assert "done" == found.flow().state
    assert ["a", "bb", (7, [Photo("a", 1), Photo("bb", 2)], "all"), "page 7"] == ran


def test_a_block_dispatches_its_flow_unless_it_raises():
    with run_now():
        with Flow() as flow:
            flow.add(say.call(1))
        other = Flow()
        with pytest.raises(NotSendable), other:
            other.add(say.call(object())).flow.dispatch()

    assert [1] == ran
    assert flow.id is not None
    assert other.id is None


def test_chains_and_groups_lie_within_each_other():
    with run_now():
        inner = group([resize.call("a"), resize.call("bb")], then=lambda photos: publish.call(1, photos))
        chain(say.call("first"), inner, say.call, chain(count.call("abc"), say.call)).dispatch()
        group([], then=say.call("alone")).dispatch()
        group([Send("x"), Send("y").call()]).dispatch()

    assert ["first", "a", "bb", (1, [Photo("a", 1), Photo("bb", 2)], ""), "page 1", 3, "alone", "to x", "to y"] == ran


def test_a_part_after_a_group_without_a_callback_is_given_all_results():
    with run_now():
        chain(group([count.call("a"), count.call("bb")]), say.call).dispatch()

    assert [[1, 2]] == ran


def test_rules_and_the_job_that_is_pushed_at_a_failure():
    with run_now(raises=False):
        flow = Flow("fails", on_failure=say.call("told"))
        bad = flow.add(fails.call())
        flow.add(say.call("never"), after=bad)
        flow.add(say.call("alarm"), after=[bad, bad], on="failure")
        flow.add(say.call("finally"), after=bad, on="any")
        found = flow.dispatch()

        assert "2 of 4 done, 1 failed, 1 cancelled" == found.flow().progress
    assert ["alarm", "finally", "told"] == sorted(map(str, ran))


def test_what_a_job_adds_runs_before_what_follows_it():
    with run_now():
        flow = Flow()
        flow.add(say.call("after"), after=flow.add(split.call(2)))
        flow.dispatch()

    assert ["part 0", "part 1", "after"] == ran


@job("flows.adds_much", tries=1)
def adds_much() -> None:
    for _ in range(9):
        current().flow.add(say.call("x" * 1_000_000))


@pytest.mark.thorough("9 MB; that a job adds others is in the test before it")
def test_a_job_adds_at_most_so_many_bytes():
    with run_now(raises=False):
        flow = Flow()
        flow.add(adds_much.using().call())
        assert "failed" == flow.dispatch().flow().state

    assert [] == ran


@job("flows.page")
def page_after_page(number: int, most: int) -> None:
    ran.append(number)
    if number < most:
        for _ in range(2 if number == most - 1 else 1):
            current().flow.add(page_after_page.call(number + 1, most))


@pytest.mark.thorough("a job adds others in test_what_a_job_adds_runs_before_what_follows_it")
def test_a_job_may_add_itself_again_and_again():
    with run_now():
        flow = Flow()
        flow.add(say.call("after"), after=flow.add(page_after_page.call(1, 30)))
        assert "32 of 32 done" == flow.dispatch().flow().progress

    assert [*range(1, 31), 30, "after"] == ran


@job("flows.sees")
def sees() -> None:
    ran.append(list(current().flow.results))


def test_a_flow_may_keep_all_results():
    with run_now(raises=False), Flow(keep_results=True, stop="nothing") as flow:
        before = [flow.add(count.call("abc")), flow.add(say.call(1)), flow.add(fails.call())]
        flow.add(sees.call(), after=before, on="any")
        flow.add(sees.call(), after=before[0])
    with run_now(), Flow() as other:
        other.add(sees.call(), after=other.add(count.call("abc")))

    assert [1, [3], [3, None, None], []] == ran


def test_fake_records_all_members_and_drain_runs_them():
    with fake() as pushes:
        found = chain(say.call(1), say.call(2)).dispatch()
        assert [{"words": 1}, {"words": 2}] == [one.kwargs for one in pushes]
        assert [] == ran
        drain()
        assert "2 of 2 done" == found.flow().progress

    assert [1, 2] == ran


def test_a_flow_waits_for_its_delays_in_no_time():
    with run_now():
        chain(say.call(1), say.using(delay="1h").call(2)).dispatch()

    assert [1, 2] == ran


def test_the_end_of_a_flow_is_an_event(monkeypatch):
    ended = []
    for kind in (FlowFinished, FlowFailed):
        LISTENERS.add(kind, ended.append)
    with run_now(raises=False):
        done, failed = chain(say.call(1)).dispatch(), chain(fails.call()).dispatch()

    assert [(FlowFinished, done, "done"), (FlowFailed, failed, "failed")] == [
        (type(one), one.id, one.state) for one in ended
    ]


def test_a_flow_may_be_dispatched_and_awaited_in_a_coroutine():
    async def dispatched() -> str:
        found = await chain(say.call(1)).adispatch()
        return (await found.await_flow(10)).state

    with run_now():
        assert "done" == asyncio.run(dispatched())


def test_nothing_is_known_of_other_flows():
    with fake():
        found = chain(say.call(1)).dispatch()
        with pytest.raises(TimeoutError, match="is running after"):
            found.wait(0.01)
        with pytest.raises(NoSuchFlow, match="nothing is known of flow"):
            found._queue.wait_flow("A" * 22)
        with pytest.raises(NoSuchFlow, match="nothing is known of flow"):
            asyncio.run(found._queue.acancel_flow("A" * 22))
        assert "running" == asyncio.run(found._queue.aflow(found)).state
        assert None is found._queue.flow("A" * 22)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda flow, one: Flow().dispatch(), "is empty"),
        (lambda flow, one: chain(), "at least one call"),
        (lambda flow, one: chain(say.call), "takes no result"),
        (lambda flow, one: Flow(stop="all"), "stop cannot be 'all'"),
        (lambda flow, one: Flow("x" * 101), "not the name of a flow"),
        (lambda flow, one: Flow(deadline="soon"), "soon"),
        (lambda flow, one: Flow().add(say.call(), after=one), "a member of another flow"),
        (lambda flow, one: Flow().add(say.call(words=result(one))), "a member of another flow"),
        (lambda flow, one: flow.add(say.call(), on="any"), "needs after="),
        (lambda flow, one: flow.add(say.call(), after=one, on="error"), "on cannot be 'error'"),
        (lambda flow, one: flow.add(say.call(), on=[]), r"on cannot be \[\]"),
        (
            lambda flow, one: flow_of(chain(group([say.call()] * 1500), group([say.call()] * 1500))),
            "at most 1000000 times",
        ),
        (lambda flow, one: flow.add(say.call(words=result(one)), on="any", after=one), "takes results"),
        (lambda flow, one: once.call(), "is unique"),
        (lambda flow, one: flow.add(say.call(words=result(flow.add(secret.call())))), "encrypted"),
        (lambda flow, one: results([one] * (MOST_TAKEN + 1)), "at most 10000 members"),
        (lambda flow, one: anything.call(**{f"a{n}": result(one) for n in range(101)}), "at most 100 arguments take"),
        (lambda flow, one: flow.add(soon.call(), after=one), "expires counts from the dispatch"),
        (lambda flow, one: flow.add(say.using(delay=NOON).call(), after=one), "delay=2040-01-01 .* counts from the"),
        (lambda flow, one: say.using(within=object()).call(), "to the dispatch of the flow"),
        (lambda flow, one: Flow(on_failure=say.call(words=result(one))), "takes no results"),
    ],
)
def test_wrong_flows_are_refused_where_they_are_written(wrong, words):
    with fake() as pushes:
        flow = Flow()
        one = flow.add(say.call(1))
        with pytest.raises(ValueError, match=words):
            wrong(flow, one)

        pushes.assert_nothing_pushed()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda one: result(7),
        lambda one: results(["a"]),
        lambda one: Flow().add(7),
        lambda one: Flow().add(say),
        lambda one: Flow().add(say.call(), after=[say.call()]),
        lambda one: resize.call(),
        lambda one: places.call(result(one)),
        lambda one: say.call([result(one)]),
        lambda one: say.call({"a": results([one])}),
        lambda one: Flow().add(one),
        lambda one: results(5),
        lambda one: Flow().add(say.call(), after=5),
    ],
)
def test_what_is_no_call_and_no_member_is_a_type_error(wrong):
    one = Flow().add(say.call(1))
    with pytest.raises(TypeError) as raised:
        wrong(one)
    assert "Options(" not in str(raised.value)
    assert "not iterable" not in str(raised.value)
    assert "register_type" not in str(raised.value)


def test_a_flow_is_dispatched_once():
    with run_now():
        flow = Flow()
        flow.add(say.call(1))
        flow.dispatch()
        for again in (flow.dispatch, lambda: flow.add(say.call(2))):
            with pytest.raises(ValueError, match="dispatched already"):
                again()


def test_an_argument_that_json_cannot_hold_is_named_before_anything_is_written():
    with fake() as pushes:
        flow = Flow()
        flow.add(say.call(1))
        flow.add(say.call(object()))
        with pytest.raises(NotSendable, match=r"argument 'words' of flows\.say"):
            flow.dispatch()

        pushes.assert_nothing_pushed()


def test_ids_are_no_flags_of_commands():
    assert not [made for made in (_new_id() for _ in range(2000)) if made.startswith("-")]


def test_the_wait_of_a_member_that_follows_others_is_not_counted_from_the_dispatch():
    waits = []
    LISTENERS.add(JobProcessed, lambda event: waits.append(event.wait))
    with run_now():
        chain(say.call(1), say.call(2)).dispatch()

    assert [False, True] == [wait is None for wait in waits]


def test_there_is_a_most_of_members():
    flow = Flow()
    flow._members = [flow.add(say.call(1))] * MOST_MEMBERS

    with pytest.raises(ValueError, match="at most 100000 members"):
        flow.add(say.call(1))


def test_a_job_outside_of_a_flow_has_none():
    with as_current():
        assert None is current().flow


def test_a_stand_in_for_results_is_not_sent_as_an_argument():
    flow = Flow()
    call = say.call(words=result(flow.add(resize.call("a"))))

    assert {} == call.data
    assert isinstance(call.takes["words"], Taken)
