"""Attempts by one real worker: tries, backoff, exceptions and limits."""

from __future__ import annotations

import time

import pytest

from tests.support.eventually import eventually


def failed(site):
    return [
        (row.name, row.exception.splitlines()[-1 if "Traceback" in row.exception else 0])
        for row in site.queue.stores.failed.page()
    ]


def test_a_job_that_returns_is_gone_and_its_hook_is_called(site):
    site.push("ok")
    done = site.work()

    assert 0 == done.returncode
    assert 1 == len(site.trail(event="end"))
    assert 1 == len(site.trail(event="after_succeeded"))
    assert 0 == site.queue.size()


def test_a_job_that_raises_is_tried_as_often_as_it_may_and_then_recorded_as_failed(site):
    site.push("raise", maxTries=3, backoff="0")
    site.work()

    assert [1, 2, 3] == [line["attempt"] for line in site.trail(event="start")]
    assert [("do", "ValueError: as asked")] == failed(site)
    assert [{"error": "ValueError"}] == [{"error": line["error"]} for line in site.trail(event="after_failed")]


def test_zero_tries_are_unlimited(site):
    site.push("raise", maxTries=0, times=7)
    site.work("--tries", "1")

    assert 8 == len(site.trail(event="start"))
    assert [] == failed(site)


def test_the_pools_tries_count_where_the_job_says_nothing(site):
    site.push("raise")
    site.work("--tries", "2")

    assert 2 == len(site.trail(event="start"))


def test_a_job_attempted_too_often_already_fails_before_it_runs(site):
    site.queue.push_raw(b'{"id":"x1","job":"do","data":{"mode":"ok"},"attempts":7}')
    site.work("--tries", "5")  # and two more, for deaths are forgiven

    assert [] == site.trail(event="start")
    assert "TooManyAttempts" in failed(site)[0][1]


def test_backoff_delays_the_next_attempt_by_the_n_th_number(site):
    site.push("raise", maxTries=3, backoff="0,30")
    site.work()

    assert 2 == len(site.trail(event="start"))
    assert 1 == site.queue.sizes().delayed


def test_max_exceptions_fail_a_job_that_has_tries_left(site):
    site.push("raise", maxTries=0, maxExceptions=3)
    site.work()

    assert 3 == len(site.trail(event="start"))
    assert 1 == len(failed(site))


def test_a_release_is_no_exception_and_does_not_count_as_one(site):
    site.push("release", maxTries=0, maxExceptions=1, times=3)
    site.work()

    assert [1, 2, 3, 4] == [line["attempt"] for line in site.trail(event="start")]
    assert [] == failed(site)


def test_retry_until_replaces_the_tries_until_its_time_has_come(site):
    site.push("raise", maxTries=1, retryUntil=int(time.time()) + 3600, times=3)
    site.push("ok", retryUntil=int(time.time()) - 10)
    site.work()

    assert 4 == len(site.trail(event="start"))
    assert ["JobExpired"] == [line.partition(":")[0].rpartition(".")[2] for _, line in failed(site)]


@pytest.mark.parametrize(
    ("mode", "fate"),
    [("fail", "JobFailedByHand: by hand"), ("sys_exit", "SystemExit: not my business")],
)
def test_a_job_may_fail_itself_or_raise_anything(site, mode, fate):
    site.push(mode)
    site.push("ok")
    done = site.work()

    assert 0 == done.returncode
    assert fate in failed(site)[0][1]
    assert 1 == len(site.trail(event="end", mode="ok"))


def test_a_job_that_deleted_itself_is_done_even_if_it_raises_after(site):
    site.push("delete")
    site.work("--tries", "0")

    assert 1 == len(site.trail(event="start"))
    assert [] == failed(site)


@pytest.mark.fault("F17")
def test_a_job_that_forks_and_returns_twice_is_settled_once(site):
    site.push("fork")
    site.work()

    assert 2 == len(site.trail(event="end"))
    assert 1 == len(site.trail(event="after_succeeded"))
    assert 0 == site.queue.size()


def test_class_jobs_get_their_fields_and_their_hooks(site):
    site.queue.push("Import", {"path": "/a"})
    site.queue.push("Import", {"path": "/b", "lines": -1})
    site.work()

    assert ["/a", "/b"] == [line["path"] for line in site.trail(event="end")]
    assert ["/a"] == [line["path"] for line in site.trail(event="after_succeeded")]
    assert ["/b"] == [line["path"] for line in site.trail(event="after_failed")]


def test_async_handlers_run(site):
    site.queue.push("add", {"left": 2, "right": 3})
    site.work()

    assert [5] == [line["sum"] for line in site.trail(mode="add")]


@pytest.mark.fault("F67")
@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("os.system", {"command": "true"}, "UnknownJob"),
        ("add", {"left": 1}, "BadArguments"),
        ("add", {"left": 1, "right": 2, "third": 3}, "BadArguments"),
        ("Import", "just a text but with lines", None),
        ("add", [1, 2, 3], "BadArguments"),
    ],
)
def test_what_cannot_run_fails_at_once_however_many_tries_it_has_if_newer_code_is_not_waited_for(
    site, name, data, reason
):
    site.queue.push(name, data)
    site.work("--tries", "0", "--unknown-retry", "0")

    assert [reason] == [line.partition(":")[0] for _, line in failed(site)] if reason else [] == failed(site)


@pytest.mark.fault("F67")
def test_a_payload_without_a_name_fails_as_unknown(site):
    site.queue.push_raw(b'{"id":"x1","data":null,"attempts":0}')
    site.work("--tries", "0")

    assert "UnknownJob" in failed(site)[0][1]


def test_queues_are_served_in_strict_priority(site):
    for queue in ("low", "high", "low", "high"):
        site.push("ok", queue=queue, tag=queue)
    site.work("--queue", "high,low")

    assert ["high", "high", "low", "low"] == [line["tag"] for line in site.trail(event="start")]


def test_a_worker_that_has_grown_too_large_leaves_with_code_12(site):
    site.push("eat", mb=120)
    site.push("ok")
    done = site.work("--memory", "100", check=False)

    assert 12 == done.returncode
    assert 1 == site.queue.size()


def test_a_worker_leaves_after_its_jobs_and_after_its_time(site):
    for _ in range(12):
        site.push("ok")
    site.work("--max-jobs", "10")

    assert 9 <= len(site.trail(event="end")) <= 10
    assert 2 <= site.queue.size() <= 3


def test_once_is_one_job(site):
    site.push("ok")
    site.push("ok")
    site.run("work", *site.flags(), "--once")

    assert 1 == len(site.trail(event="end"))


def test_odd_wishes_of_a_payload_are_ignored_with_a_warning_and_the_job_runs(site):
    site.queue.push_raw(b'{"id":"x1","job":"do","data":[],"backoff":"1,x","timeout":"abc","attempts":0}')
    done = site.work()

    assert 1 == len(site.trail(event="end"))
    assert 1 == done.stderr.count("backoff")
    assert 1 == done.stderr.count("timeout")


@pytest.mark.fault("F61")
def test_what_is_no_job_is_quarantined_and_the_queue_flows_on(site):
    site.queue.push_raw(b"\xff\xfe nonsense")
    site.queue.push_raw(b'{"id":"a\\u0000b","job":"do","attempts":0}')
    site.push("ok")
    site.work()

    assert ["id", "json"] == sorted(entry.reason for entry in site.queue.stores.records.quarantined("default"))
    assert 1 == len(site.trail(event="end"))


def test_a_listener_may_hold_the_worker_and_one_that_raises_harms_nothing(site):
    (site.path / "ears.py").write_text(
        "from queuepool import on\n"
        "from queuepool.events import JobProcessing, Looping\n"
        "from tests.support.poolapp import note\n"
        "rounds = []\n"
        "@on(Looping)\n"
        "def hold(event):\n"
        "    rounds.append(1)\n"
        "    return len(rounds) > 2\n"
        "@on(JobProcessing)\n"
        "def stumble(event):\n"
        "    note(event='heard', name=event.job.name)\n"
        "    raise RuntimeError('deaf')\n"
    )
    site.push("ok")
    with site.pool("--workers", "1", "--listeners", "ears", "--sleep", "0.05", wait=False) as pool:
        eventually(lambda: site.trail(event="end"))

    assert ["do"] == [line["name"] for line in site.trail(event="heard")]
    assert "deaf" in pool.log()


def test_a_worker_that_leaves_when_empty_does_not_wait_for_the_end_of_maintenance(site):
    site.queue.stores.control.down()
    site.push("ok")
    site.work()

    assert 1 == site.queue.size()
