"""Many coroutine jobs at once in one worker: each ends as it would alone, whatever its neighbours do."""

from __future__ import annotations

import json
import re
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from queuepool.search.ended import read
from tests.support.eventually import eventually
from tests.support.meters import counts_in, of_job
from tests.support.pools import Site
from tests.support.redis_server import PREFIX

BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.besideapp")


def push(site: Site, mode: str, **data: Any) -> str:
    return site.push(mode, name="beside", **data)


def neighbour(site: Site) -> None:
    """A job that runs until ``ends``."""
    push(site, "until", gate=str(site.path / "gate"), tag="neighbour", maxTries=1)


def goes_on(site: Site) -> None:
    """The neighbour runs, in its first attempt, and ends when it is told to."""
    (site.path / "gate").touch()
    eventually(lambda: site.trail(event="end", tag="neighbour"))
    assert 1 == len(site.trail(event="start", tag="neighbour"))
    assert 1 == len({line["pid"] for line in site.trail()})


def only_failure(site: Site) -> Any:
    return eventually(site.queue.stores.failed.page)[0]


def asked(site: Site, pool: Any, verb: str, *flags: str) -> str:
    return site.run(verb, *site.where, "--runtime-dir", pool.runtime, *flags).stdout


@pytest.mark.thorough("the next test has as many at once, and no more")
def test_as_many_as_the_concurrency_says_run_at_once(site):
    for _ in range(20):
        push(site, "together", number=20)
    with site.pool(*BESIDE[:3], "20", *BESIDE[4:]):
        eventually(lambda: 20 == len(site.trail(event="end")))
        eventually(lambda: 0 == site.queue.size())

    assert 1 == len({line["pid"] for line in site.trail(event="start")})


@pytest.mark.thorough("only an odd key in the store makes it happen")
def test_an_attempt_on_which_the_store_refuses_a_verdict_counts_once(site, server):
    """For it, the store cannot say how often the job has raised."""
    refused = push(site, "raise", maxTries=5, maxExceptions=3)
    server.set(site.queue.stores.queue.keys.tallies(refused), "no hash")
    with site.pool(*BESIDE) as pool:
        counted = partial(of_job, name="beside")
        eventually(lambda: counted(counts_in(Path(pool.runtime))).ended)
        push(site, "ok")
        eventually(lambda: 1 == counted(counts_in(Path(pool.runtime))).done)
        found = counted(counts_in(Path(pool.runtime)))

    assert (1, 1, 2) == (found.given_back, found.lease, found.ended)


def test_and_no_more_than_that(site):
    for _ in range(15):
        push(site, "until", gate=str(site.path / "gate"))
    with site.pool(*BESIDE):
        eventually(lambda: 10 == len(site.trail(event="start")))
        push(site, "ok")
        (site.path / "gate").touch()
        eventually(lambda: 16 == len(site.trail(event="end")))

    lines = [line["event"] for line in site.trail() if line["event"] in ("start", "left")]
    running = [lines[:end].count("start") - lines[:end].count("left") for end in range(len(lines))]
    assert 10 == max(running)


def test_a_job_past_its_deadline_is_cancelled_and_cleans_up_and_is_tried_again(site):
    neighbour(site)
    push(site, "sleep", seconds=60, timeout=0.3, maxTries=2)
    with site.pool(*BESIDE) as pool:
        record = only_failure(site)
        goes_on(site)

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start", mode="sleep")]
    assert 2 == len(site.trail(event="left", mode="sleep"))
    assert "TimedOut" in record.exception
    assert "besideapp.py" in record.exception
    eventually(lambda: site.trail(event="after_failed", error="TimedOut"))
    assert "signal 14" not in pool.log()


def test_the_tasks_that_it_awaits_are_cancelled_with_it(site):
    neighbour(site)
    push(site, "until", gate=str(site.path / "gate"), timeout=0.2)  # whose timer ends the other one, too
    push(site, "await_another", timeout=0.2, maxTries=1)
    with site.pool(*BESIDE):
        eventually(lambda: 2 == len(site.trail(event="cancelled")))
        eventually(lambda: site.trail(event="left", mode="await_another"))
        goes_on(site)


@pytest.mark.thorough("another job's task is in one job's hands only by the application's own doing")
def test_a_job_that_awaits_anothers_task_is_cancelled_at_its_deadline_and_the_task_is_not(site):
    push(site, "offer", gate=str(site.path / "gate"), tag="neighbour")
    with site.pool(*BESIDE) as pool:
        eventually(lambda: site.trail(event="offered"))
        push(site, "await_anothers", how="await", timeout=0.3, maxTries=1)
        assert "TimedOut" in only_failure(site).exception
        goes_on(site)

    assert "signal 14" not in pool.log()


@pytest.mark.thorough("another job's task is in one job's hands only by the application's own doing")
def test_one_that_gathers_anothers_tasks_ends_with_its_worker_and_is_the_one_that_was_late(site):
    push(site, "offer", gate=str(site.path / "gate"), tag="offer")
    with site.pool(*BESIDE):
        eventually(lambda: site.trail(event="offered"))
        push(site, "await_anothers", how="gather", timeout=0.3, maxTries=1)
        failure = only_failure(site)
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end", tag="offer"))

    assert "ran past its deadline" in failure.exception
    assert "await_anothers" in failure.payload
    assert [1, 1] == [line["attempt"] for line in site.trail(event="start", tag="offer")]


@pytest.mark.thorough("what becomes of a late job is ruled as for a job by itself, in test_deaths.py")
def test_fail_on_timeout_ends_a_job_that_has_tries_left(site):
    push(site, "sleep", seconds=60, timeout=0.3, maxTries=5, failOnTimeout=True)
    with site.pool(*BESIDE):
        only_failure(site)

    assert 1 == len(site.trail(event="start"))


@pytest.mark.thorough("what becomes of a late job is ruled as for a job by itself, in test_deaths.py")
def test_a_timeout_counts_as_an_exception(site):
    push(site, "sleep", seconds=60, timeout=0.2, maxTries=9, maxExceptions=2)
    with site.pool(*BESIDE):
        only_failure(site)

    assert 2 == len(site.trail(event="start"))


@pytest.mark.thorough("what becomes of a late job is ruled as for a job by itself, in test_deaths.py")
def test_a_timeout_is_not_what_retry_on_excludes(site):
    site.queue.push("picky", options={"timeout": 0.2, "maxTries": 2})
    with site.pool(*BESIDE):
        record = only_failure(site)

    assert 2 == len(site.trail(event="start"))
    assert "TimedOut" in record.exception


@pytest.mark.thorough("neighbours of the jobs in other tests have no timeout either")
def test_a_job_without_a_timeout_runs_on_beside_those_that_have_one(site):
    push(site, "until", gate=str(site.path / "gate"), tag="neighbour", timeout=0)
    push(site, "sleep", seconds=60, timeout=0.3, maxTries=1)
    with site.pool(*BESIDE):
        only_failure(site)
        goes_on(site)


def test_a_soft_timeout_is_raised_in_its_job_alone(site):
    neighbour(site)
    site.queue.push("soft", options={"maxTries": 1})
    with site.pool(*BESIDE):
        record = only_failure(site)
        goes_on(site)

    assert "SoftTimeout" in record.exception


@pytest.mark.thorough("the test above has a soft timeout beside others")
def test_a_plain_function_that_has_returned_is_done_although_its_soft_timeout_has_passed(site):
    site.queue.push("soft_plain")
    with site.pool(*BESIDE):
        eventually(lambda: site.trail(event="end", mode="soft_plain"))
        eventually(lambda: 0 == site.queue.size())

    assert 0 == site.queue.stores.failed.count()


@pytest.mark.thorough("rare: a deadline that passes while another job holds the loop")
def test_what_was_there_before_a_deadline_counts_when_a_busy_loop_learns_it_later(site):
    gates = {"plain": str(site.path / "plain"), "loop": str(site.path / "loop")}
    site.push("until", gate=gates["plain"], timeout=5, maxTries=1)
    push(site, "sleep", seconds=4, timeout=5, maxTries=1)
    with site.pool(*BESIDE, "--grace", "60"):
        eventually(lambda: {"until", "sleep"} == {line["mode"] for line in site.trail(event="start")})
        push(site, "hog", gate=gates["loop"])
        eventually(lambda: site.trail(event="start", mode="hog"))
        Path(gates["plain"]).touch()
        eventually(lambda: site.trail(event="end", mode="until"))
        deadlines = max(line["at"] for line in site.trail(event="start", mode="sleep")) + 5
        eventually(lambda: time.time() > deadlines + 0.1)
        Path(gates["loop"]).touch()
        eventually(lambda: 0 == site.queue.size())

    assert 0 == site.queue.stores.failed.count()


def test_plain_functions_run_in_threads_at_the_same_time(site):
    neighbour(site)
    for _ in range(5):
        site.push("until", gate=str(site.path / "plain"), tag="plain")
    with site.pool(*BESIDE):
        eventually(lambda: 5 == len(site.trail(event="start", tag="plain")))
        (site.path / "plain").touch()
        eventually(lambda: 5 == len(site.trail(event="end", tag="plain")))
        goes_on(site)


@pytest.mark.by_turns("mode", "error")
@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("raise", "ValueError"),
        ("sys_exit", "SystemExit"),
        ("recurse", "RecursionError"),
        ("run_another", "RuntimeError"),
        ("close_the_loop", "RuntimeError"),
        ("cancel_all", "CancelledError"),
    ],
)
def test_what_a_job_raises_ends_that_job_alone(site, mode, error):
    neighbour(site)
    push(site, mode, maxTries=2)
    with site.pool(*BESIDE):
        record = only_failure(site)
        eventually(lambda: site.trail(event="after_failed", mode=mode, error=error))
        goes_on(site)

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start", mode=mode)]
    assert error in record.exception


@pytest.mark.by_turns("mode")
@pytest.mark.parametrize("mode", ["stop_the_loop", "callback", "child"])
def test_what_a_job_does_to_the_loop_harms_nobody(site, mode):
    neighbour(site)
    push(site, mode, maxTries=1)
    with site.pool(*BESIDE):
        eventually(lambda: site.trail(event="end", mode=mode))
        goes_on(site)

    assert 0 == site.queue.stores.failed.count()
    assert [-15] * (mode == "child") == [line["code"] for line in site.trail(event="child")]


@pytest.mark.thorough("a fork that returns is settled once in test_attempts.py")
def test_a_child_that_a_job_forks_and_that_returns_into_it_goes_no_further(site):
    neighbour(site)
    push(site, "fork", maxTries=1)
    with site.pool(*BESIDE):
        eventually(lambda: site.trail(event="end", mode="fork"))
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end", tag="neighbour"))
        eventually(lambda: 0 == site.queue.size())

    assert 1 == len(site.trail(event="end", tag="neighbour"))
    assert 0 == site.queue.stores.failed.count()


@pytest.mark.by_turns("work", "told")
@pytest.mark.parametrize(("work", "told"), [("go_on", 1), ("quit", 0), ("refuse", 1)])
def test_tasks_that_a_job_leaves_are_its_own(site, work, told):
    neighbour(site)
    push(site, "leave", work=work, timeout=2, maxTries=1)
    with site.pool(*BESIDE) as pool:
        eventually(lambda: site.trail(event="after_succeeded", mode="leave"))
        goes_on(site)
        eventually(lambda: 0 == site.queue.size())

    assert told == pool.log().count("tasks left behind")
    assert 0 == site.queue.stores.failed.count()


@pytest.mark.by_turns("how", "starts", "failures")
@pytest.mark.parametrize(("how", "starts", "failures"), [("release", [1, 2], 0), ("fail", [1], 1), ("delete", [1], 0)])
def test_a_job_decides_how_its_attempt_ends(site, how, starts, failures):
    push(site, "decide", how=how, maxTries=3)
    with site.pool(*BESIDE):
        eventually(lambda: len(starts) == len(site.trail(event="end")) and 0 == site.queue.size())
        assert failures == site.queue.stores.failed.count()

    assert starts == [line["attempt"] for line in site.trail(event="start")]


def test_each_hook_belongs_to_its_job(site):
    ids = {push(site, "raise", tag=str(number), maxTries=1): str(number) for number in range(10)}
    with site.pool(*BESIDE):
        hooks = eventually(lambda: len(found := site.trail(event="after_failed")) == 10 and found)

    assert ids == {line["id"]: line["tag"] for line in hooks}


@pytest.mark.thorough("the same hooks as those of the tests above, at another moment")
def test_the_hook_of_the_last_job_has_its_time_before_the_worker_leaves(site):
    push(site, "raise", maxTries=1)
    with site.pool(*BESIDE, "--max-jobs", "1"):
        eventually(lambda: site.trail(event="after_failed"))


@pytest.mark.thorough("the same hooks as those of the tests above, at another moment")
def test_a_hook_that_outlasts_the_deadline_does_not_fail_its_job(site):
    push(site, "ok", hook=60, timeout=0.5, maxTries=1)
    with site.pool(*BESIDE):
        eventually(lambda: 0 == site.queue.size() and site.trail(event="end"))

    assert 0 == site.queue.stores.failed.count()


def test_a_hook_that_blocks_the_loop_ends_its_worker_and_no_job_is_charged(site):
    """Nor suspected, though one is in a thread: the main thread could look."""
    push(site, "until", gate=str(site.path / "gate"), tag="neighbour", timeout=0)
    site.push("until", gate=str(site.path / "gate"), timeout=0)
    # The grace is for the thread that says where it hangs: a busy machine lets it wait.
    with site.pool(*BESIDE, "--timeout", "1", "--grace", "3") as pool:
        eventually(lambda: 2 == len(site.trail(event="start", mode="until")))
        push(site, "raise", hook="blocks", maxTries=1)
        eventually(lambda: site.trail(event="after_failed"))
        push(site, "ok")
        eventually(lambda: site.trail(event="end", mode="ok"))
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end", tag="neighbour"))

    assert [1, 1, 1, 1] == [line["attempt"] for line in site.trail(event="start", mode="until")]
    assert [1] == [line["attempt"] for line in site.trail(event="start", mode="ok")]
    assert 1 == site.queue.stores.failed.count()
    assert re.search(r"event loop blocked .*\n(    .*\n)*    .*besideapp.py\", line \d+, in failed", pool.log())
    assert "the event loop has not answered for" in pool.log()


@pytest.mark.thorough("the same hooks as those of the tests above, at another moment")
def test_a_hook_may_hold_up_the_loop_for_as_long_as_its_job_might_have_taken(site):
    with site.pool(*BESIDE, "--timeout", "1", "--grace", "0.5") as pool:
        push(site, "raise", hook="naps", maxTries=1, timeout=60)
        eventually(lambda: site.trail(event="has napped"))
        assert "the event loop has not answered for" not in pool.log()


@pytest.mark.thorough("unit/test_meters.py counts errors under the names of jobs")
def test_errors_count_under_the_names_of_their_jobs(site):
    for number in range(5):
        push(site, "raise", maxTries=1)
        push(site, "ok", tag=str(number))
        site.push("raise", maxTries=1)
    with site.pool(*BESIDE) as pool:
        eventually(lambda: 10 == site.queue.stores.failed.count())

        expected = {("beside", "ValueError"): 5, ("do", "ValueError"): 5}
        eventually(lambda: expected == dict(counts_in(Path(pool.runtime)).errors))


@pytest.mark.thorough("what is settled is unlocked by the same act as that of a job by itself")
def test_a_unique_job_is_unlocked_at_its_end(site):
    gate = str(site.path / "gate")
    assert site.queue.push("once", {"gate": gate})
    with site.pool(*BESIDE):
        eventually(lambda: site.trail(event="start", mode="once"))
        (site.path / "gate").touch()
        eventually(lambda: 0 == site.queue.size())


def test_those_who_follow_a_job_see_its_progress_and_its_result(site):
    job_id = site.queue.push("tracked", {"gate": str(site.path / "gate")})
    with site.pool(*BESIDE) as pool:
        eventually(lambda: "half" in asked(site, pool, "status", "--json"))
        assert "1 of 1 workers busy" in asked(site, pool, "top", "--once")
        eventually(lambda: b"half" in (site.queue.stores.values.state(job_id) or b""))  # for other hosts
        (site.path / "gate").touch()
        eventually(lambda: "42" in site.run("job", *site.where, job_id, check=False).stdout)


def test_status_and_titles_show_all_that_run(site):
    for number in range(4):
        push(site, "until", gate=str(site.path / "gate"), tag=str(number))
    with site.pool(*BESIDE) as pool:
        eventually(lambda: 4 == len(site.trail(event="start")))
        shown = json.loads(asked(site, pool, "status", "--json"))
        eventually(lambda: any("jobs=4/10" in title for title in pool.titles().values()))
        (site.path / "gate").touch()
        eventually(lambda: 4 == len(site.trail(event="end")))

    assert "beside" in json.dumps(shown)


@pytest.mark.thorough("a reserve meets such a payload before anything runs beside it")
def test_what_cannot_be_a_job_is_quarantined_and_the_others_run(site, server):
    key = f"{PREFIX}queues:default"
    neighbour(site)
    with site.pool(*BESIDE):
        eventually(lambda: site.trail(event="start"))
        server.rpush(key, b"no job", b"[1, 2]")
        server.rpush(f"{key}:notify", 1, 1)
        push(site, "ok")
        eventually(lambda: site.trail(event="end", mode="ok"))
        eventually(lambda: 2 == len([*site.queue.stores.records.quarantined("default")]))
        goes_on(site)


@pytest.mark.thorough("a reserve meets such a payload before anything runs beside it")
def test_a_job_that_nobody_knows_is_retried_and_fails_as_ever(site):
    neighbour(site)
    site.queue.push("nobody", {}, options={"maxTries": 1})
    with site.pool(*BESIDE):
        record = only_failure(site)
        goes_on(site)

    assert "nobody" in record.exception


@pytest.mark.thorough("a slower path of the same hand")
def test_payloads_larger_than_a_lane_run(site):
    neighbour(site)
    for number in range(5):
        push(site, "ok", tag=f"{number}", filler="x" * 50_000)
    with site.pool(*BESIDE):
        eventually(lambda: 5 == len(site.trail(event="end", mode="ok")))
        goes_on(site)


def test_long_jobs_keep_their_leases(site):
    for _ in range(5):
        push(site, "sleep", seconds=12)
    # A steward that a busy machine stops for four seconds still renews them.
    with site.pool(*BESIDE, config="[connection]\nretry_after = 8\n"):
        eventually(lambda: 5 == len(site.trail(event="end")))
        eventually(lambda: 0 == site.queue.size())

    assert 5 == len(site.trail(event="start"))


def test_a_job_whose_lease_is_lost_is_told_to_end_and_is_not_settled(site, server):
    neighbour(site)
    # the neighbour keeps its own
    with site.pool(*BESIDE, "--keep-done", "1h", config="[connection]\nretry_after = 5\n") as pool:
        eventually(lambda: site.trail(event="start", tag="neighbour"))
        push(site, "sleep", seconds=60, tag="lost", timeout=0)
        eventually(lambda: site.trail(event="start", tag="lost"))
        reserved = f"{PREFIX}queues:default:reserved"
        [lost] = [one for one in server.zrange(reserved, 0, -1) if b"seconds" in one]
        server.zrem(reserved, lost)
        eventually(lambda: site.trail(event="left", tag="lost"))
        eventually(lambda: "lease" in pool.log())
        goes_on(site)

    [ended] = [one for one in read(chain.from_iterable(site.queue.stores.attempts.pages("default"))) if one.is_lost]
    assert ("lost", 1, True) == (ended.outcome, ended.attempts, (ended.seconds or 0) > 0)
    assert [] == site.trail(event="end", tag="lost")
    assert 0 == site.queue.stores.failed.count()


@pytest.mark.thorough("the test above has a lease that is lost")
def test_a_job_that_is_done_counts_as_done_though_its_lease_is_lost_in_its_hook(site, server):
    push(site, "ok", hook=60)
    with site.pool(*BESIDE, config="[connection]\nretry_after = 3\n") as pool:
        eventually(lambda: site.trail(event="end"))
        server.delete(f"{PREFIX}queues:default:reserved")
        counted = partial(of_job, name="beside")
        eventually(lambda: counted(counts_in(Path(pool.runtime))).ended)
        found = counted(counts_in(Path(pool.runtime)))

    assert (1, 0) == (found.done, found.given_back)


@pytest.mark.parametrize("flags", [("--preload",), ("--reserve-ahead", "5"), ("--rest", "1")])
def test_what_contradicts_it_is_refused_in_one_line(site, flags):
    ended = site.run("start", *site.flags(*BESIDE, *flags), "--runtime-dir", str(site.path / "run"), check=False)

    assert 0 != ended.returncode
    assert 1 == len(ended.stderr.strip().splitlines())
    assert "concurrency" in ended.stderr


@pytest.mark.parametrize("verb", ["work", "listen"])
def test_a_lone_worker_has_no_concurrency(site, verb):
    ended = site.run(verb, *site.flags(*BESIDE[2:]), check=False)

    assert 0 != ended.returncode
    assert "concurrency" in ended.stderr


PRINTS = """
import asyncio
from queuepool import around, current, job
from tests.support.poolapp import note

@around
def surrounds(running):
    note(event="entered", id=running.id, seen=current().id)
    try:
        yield
    finally:
        note(event="has left", id=running.id, seen=current().id)

@job("prints")
async def prints(word):
    print(f"begin {word} ", end="")
    await asyncio.sleep(0.1)
    print(f"end {word}")
"""


def test_what_a_job_prints_and_what_surrounds_it_is_its_own(site):
    (site.path / "printing.py").write_text(PRINTS)
    ids = {site.queue.push("prints", {"word": word}): word for word in ("one", "two", "three")}
    with site.pool(*BESIDE[:5], "printing") as pool:
        eventually(lambda: 3 == len(site.trail(event="has left")))
        eventually(lambda: 0 == site.queue.size())

    for job_id, word in ids.items():
        assert [job_id] * 2 == [line["seen"] for line in site.trail(id=job_id)]
        assert any(job_id in line and f"begin {word} end {word}" in line for line in pool.log().splitlines())
