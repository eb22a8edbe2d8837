"""Faults of a worker, injected into a real pool."""

from __future__ import annotations

import signal

import pytest

from tests.support.eventually import eventually
from tests.support.faultapp import RAISED

MODULES = ("--modules", "tests.support.poolapp,tests.support.faultapp")


def failures(site, count):
    """What is recorded when so many have failed, by id."""
    return eventually(lambda: len(rows := site.queue.stores.failed.page()) == count and {row.id: row for row in rows})


@pytest.mark.fault("F05", "F20")
def test_whatever_a_job_raises_it_is_recorded_and_its_worker_goes_on(site):
    ids = {site.queue.push("throw", {"what": what}): what for what in RAISED}
    with site.pool("--workers", "1", *MODULES) as pool:
        before = pool.workers()
        rows = failures(site, len(ids))

        assert before == pool.workers()

    assert [] == [
        what for identity, what in ids.items() if what[:3] not in rows[identity].exception and what in "OddMute"
    ]
    assert 70_000 > max(len(row.exception) for row in rows.values())
    assert 40_000 > max(map(len, pool.log().splitlines()))


@pytest.mark.thorough("hundreds of megabytes")
def test_what_a_failed_job_had_in_memory_is_free_at_once_and_not_when_the_collector_comes(site):
    (site.path / "uncollected.py").write_text("import gc\ngc.disable()\n")
    for _ in range(3):
        site.queue.push("throw", {"what": "large"})
    with site.pool(
        "--workers", "1", "--memory", "128", "--modules", "tests.support.poolapp,tests.support.faultapp,uncollected"
    ) as pool:
        before = pool.workers()
        failures(site, 3)
        site.push("ok")
        eventually(lambda: site.trail(event="end"))

        assert before == pool.workers()


@pytest.mark.fault("F06", "F07")
@pytest.mark.parametrize(("name", "words"), [("abort", "SIGABRT"), ("recurse", "faultapp.py")])
def test_a_job_that_ends_in_c_costs_one_worker_and_says_where(site, name, words):
    site.queue.push(name)
    site.push("ok")
    with site.pool("--workers", "1", *MODULES):
        [row] = failures(site, 1).values()
        eventually(lambda: site.trail(event="end"))

    assert words in row.exception
    assert 0 == site.queue.size()


@pytest.mark.fault("F16")
def test_a_job_that_closes_every_descriptor_is_settled_once_and_the_next_one_has_its_deadline(site):
    site.queue.push("close_all")
    site.push("ok")
    site.push("hang_in_c", timeout=2)
    with site.pool("--workers", "1", *MODULES):
        [row] = failures(site, 1).values()

    assert "poolapp.py" in row.exception
    assert (1, 0) == (len(site.trail(event="end", mode="ok")), site.queue.size())


@pytest.mark.fault("F18")
def test_what_a_job_does_to_its_process_ends_with_it_where_workers_run_one_job_each(site):
    for _ in range(2):
        site.queue.push("canary")
        site.queue.push("spoil", {"folder": str(site.path / "gone")})
    site.queue.push("canary")
    with site.pool("--workers", "1", "--max-jobs", "1", *MODULES):
        eventually(lambda: 3 == len(site.trail(event="canary")))

    assert 1 == len(
        {tuple(line[key] for key in ("here", "path", "closed", "umask")) for line in site.trail(event="canary")}
    )


@pytest.mark.fault("F18")
def test_a_worker_whose_job_spoiled_its_process_works_on_and_tells_where_the_next_one_hangs(site):
    site.queue.push("spoil", {"folder": str(site.path / "gone")})
    site.push("hang_in_c", timeout=1)
    site.push("ok")
    with site.pool("--workers", "1", *MODULES):
        [row] = failures(site, 1).values()
        eventually(lambda: site.trail(event="end"))

    assert "signal 14" in row.exception
    assert "in hang_in_c" in row.exception


@pytest.mark.fault("F19")
def test_a_thread_and_an_exit_handler_that_never_end_hold_nobody_up(site):
    site.queue.push("linger")
    done = site.work(*("--modules", "tests.support.faultapp"))
    site.queue.push("linger")
    with site.pool("--workers", "1", *MODULES) as pool:
        eventually(lambda: 0 == site.queue.size())
        pool.signal(signal.SIGHUP)
        eventually(lambda: pool.log().count("worker starting") == 2)
        eventually(lambda: pool.log().count("worker stopping") == 1)
        site.queue.push("linger")

    assert 0 == done.returncode


@pytest.mark.fault("F21")
@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.thorough("more moments, each four times"))])
def test_a_job_that_ends_about_its_deadline_is_done_or_timed_out_and_never_both(site, count):
    """Within five milliseconds of it, on both sides; and half of them sooner, as on a busy machine all come later."""
    timeout, ids, moments = 0.05, list[str](), min(count, 50)
    for number in range(count):
        for _ in range(2):  # a worker whose every first job kills it has to rest
            site.push("ok")
        seconds = timeout - 0.005 - 0.03 * (number % 2) + 0.01 * (number % moments) / moments
        ids.append(site.queue.push("until_about", {"seconds": seconds}, options={"timeout": timeout, "maxTries": 1}))
    with site.pool("--workers", "4", *MODULES) as pool:
        eventually(lambda: 0 == site.queue.size(), within=120)
        eventually(lambda: pool.pids("master .* busy=0"))
    failed = {row.id for row in site.queue.stores.failed.page()}
    ended, succeeded = ([line["id"] for line in site.trail(event=event)] for event in ("ended", "succeeded"))

    assert 0 < len(failed) < len(ids), "nobody came near its deadline"
    assert set() == set(ids) - failed - set(ended)
    assert (set(), len(set(succeeded))) == (failed & set(succeeded), len(succeeded))


@pytest.mark.fault("F23")
def test_a_finally_that_never_ends_does_not_outlast_the_first_deadline(site):
    site.queue.push("hold_on", options={"timeout": 0.3})
    with site.pool("--workers", "1", *MODULES):
        [row] = failures(site, 1).values()

    assert "TimedOut" in row.exception
    assert "signal 14" in row.exception


@pytest.mark.fault("F39")
def test_every_worker_draws_numbers_of_its_own(site):
    for _ in range(12):
        site.queue.push("draw")
    with site.pool("--workers", "4", "--max-jobs", "2", *MODULES):
        drawn = eventually(lambda: len(found := site.trail(event="drawn")) == 12 and found)

    assert 6 <= len({line["pid"] for line in drawn})
    assert (12, 12) == tuple(len({line[key] for line in drawn}) for key in ("number", "id"))


@pytest.mark.fault("F40")
def test_what_a_job_leaves_in_a_buffer_is_printed_once(site):
    site.queue.push("mutter")
    with site.pool("--workers", "1", *MODULES) as pool:
        eventually(lambda: 0 == site.queue.size())
        pool.signal(signal.SIGHUP)
        eventually(lambda: pool.log().count("worker stopping") == 1)

    assert 1 == pool.log().count("half a line")
