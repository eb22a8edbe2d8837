"""``@lifespan``: what lives on the loop of the jobs begins before the first of them and ends after the last."""

from __future__ import annotations

import pytest

from tests.support.eventually import eventually
from tests.support.pools import Site

BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.lifespanapp")


def events(site: Site) -> list[str]:
    return [line["event"] for line in site.trail()]


def test_it_surrounds_the_jobs_of_a_worker_on_their_loop_and_in_their_contexts(site):
    for _ in range(2):
        site.queue.push("uses")
    with site.pool(*BESIDE):
        eventually(lambda: 2 == len(site.trail(event="used")))

    assert ["first begins", "second begins", "used", "used", "second ends", "first ends"] == events(site)
    assert [(True, "entered")] * 2 == [(line["same"], line["first"]) for line in site.trail(event="used")]


def test_one_that_raises_is_a_failure_to_boot_and_those_before_it_are_left(site, monkeypatch):
    monkeypatch.setenv("LIFESPAN", "raises")
    with site.pool(*BESIDE, wait=False) as pool:
        assert 1 == pool.wait()

    assert "@lifespan tests.support.lifespanapp.second: ConnectionError: no such server" in pool.log()
    assert ["first begins", "second begins", "first ends"] == events(site)[:3]


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["hangs", "blocks"])
def test_one_that_takes_longer_than_the_boot_may_is_a_failure_to_boot(site, monkeypatch, how):
    monkeypatch.setenv("LIFESPAN", how)
    with site.pool(*BESIDE, "--boot-timeout", "1", wait=False) as pool:
        eventually(lambda: "the start of @lifespan took longer than boot_timeout (1 s)" in pool.log())

    assert "lifespanapp.py" in pool.log() or how == "hangs"


def test_a_stop_ends_a_worker_that_still_begins_them(site, monkeypatch):
    monkeypatch.setenv("LIFESPAN", "hangs")
    with site.pool(*BESIDE, wait=False):
        eventually(lambda: "second begins" in events(site))

    assert "second ends" not in events(site)


@pytest.mark.thorough("five seconds; the first test ends them in order, the next ones fail at a beginning")
@pytest.mark.parametrize("how", ["hangs at its end", "blocks at its end"])
def test_one_that_does_not_end_does_not_hold_its_worker_up(site, monkeypatch, how):
    monkeypatch.setenv("LIFESPAN", how)
    with site.pool(*BESIDE) as pool:
        eventually(pool.workers)

    assert "second ends" in events(site)
    assert "has not ended within 5 s: the worker leaves" in pool.log()
    assert "died" not in pool.log()


def test_a_task_of_one_that_blocks_the_loop_ends_the_worker_and_no_job_is_charged(site):
    site.queue.push("stays")
    with site.pool(*BESIDE, "--timeout", "1", "--grace", "0.5") as pool:
        eventually(lambda: site.trail(event="stays"))
        (site.path / "block").touch()
        eventually(lambda: not (site.path / "block").exists())
        site.queue.push("uses")
        eventually(lambda: site.trail(event="used"))
        (site.path / "end").touch()
        eventually(lambda: site.trail(event="has stayed"))

    assert [1, 1] == [line["attempt"] for line in site.trail(event="stays")]
    assert "the event loop has not answered for" in pool.log()
    assert 'lifespanapp.py", line' in pool.log()


@pytest.mark.thorough("a lifespan that misbehaves; the tests above have one that raises and one that takes too long")
def test_such_a_task_ends_the_worker_also_while_a_verdict_waits_for_the_store(away, own_server):
    site = away
    site.queue.push("stays")
    site.queue.push("stays", options={"timeout": 2})
    # The grace: on a busy machine a job that is cancelled may end half a second later, and another worker has no job.
    with site.pool(*BESIDE, "--grace", "3", "--timeout", "1") as pool:
        eventually(lambda: 2 == len(site.trail(event="stays")))
        workers = pool.workers()
        own_server.kill()
        eventually(lambda: "TimedOut" in pool.log())
        assert workers == pool.workers()
        (site.path / "block").touch()
        eventually(lambda: "the event loop has not answered for" in pool.log())
        own_server.start()


@pytest.mark.thorough("the second test leaves the first one when the second has raised")
def test_what_one_raises_at_its_end_is_told_and_the_others_end(site, monkeypatch):
    monkeypatch.setenv("LIFESPAN", "raises at its end")
    with site.pool(*BESIDE) as pool:
        eventually(pool.workers)

    assert "@lifespan tests.support.lifespanapp.second raised at its end" in pool.log()
    assert "first ends" in events(site)


def test_a_worker_that_runs_one_job_at_a_time_refuses_them_in_one_line(site):
    with site.pool("--workers", "1", *BESIDE[-2:], wait=False) as pool:
        assert 1 == pool.wait()
    alone = site.run("work", *site.flags(*BESIDE[-2:]), check=False)

    words = (
        "@lifespan tests.support.lifespanapp.first: a worker that runs one job at a time has no event loop that lasts"
    )
    assert words in pool.log()
    assert words in alone.stderr
    assert [] == events(site)


def test_only_an_async_generator_function_is_one():
    from queuepool import lifespan

    async def coroutine() -> None: ...

    with pytest.raises(TypeError, match=r"@lifespan .*coroutine: it must be an async generator function"):
        lifespan(coroutine)  # type: ignore[type-var]
