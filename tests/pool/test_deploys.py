"""A deploy in between: jobs of newer code meet older workers, and renamed jobs are queued under their old name."""

from __future__ import annotations

import re

import pytest

from tests.support.eventually import eventually
from tests.support.pools import Site

OLD = """
from queuepool import job
from tests.support.poolapp import note
@job(tries=3)
def bill(order: int) -> None:
    note(event="end", order=order)
"""
NEW = """
from queuepool import job
from tests.support.poolapp import note
@job("shop_jobs.invoice", tries=3, aliases=["shop_jobs.bill", "shop_jobs.charge"])
def invoice(order: int, currency: str = "EUR") -> None:
    note(event="end", order=order, currency=currency)
@job(tries=3)
def ship(order: int) -> None:
    note(event="end", shipped=order)
"""
TRIES = {"options": {"tries": 20}}


def delays_of(name: str, log: str) -> list[str]:
    return re.findall(rf"job released .* job={re.escape(name)} .* delay=(\S+)", log)


@pytest.mark.by_turns("preload")
@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["plain", "preload"])
def test_jobs_of_newer_code_wait_for_the_reload_with_a_growing_delay(site: Site, preload: list[str]) -> None:
    module = site.path / "shop_jobs.py"
    module.write_text(OLD)
    with site.pool("--modules", "shop_jobs", "--workers", "1", "--unknown-retry", "1", *preload) as pool:
        site.queue.push("shop_jobs.ship", {"order": 1}, **TRIES)
        site.queue.push("shop_jobs.bill", {"order": 2, "currency": "USD"}, **TRIES)
        for name in ("shop_jobs.ship", "shop_jobs.bill"):
            eventually(lambda name=name: delays_of(name, pool.log()))
        assert [] == site.queue.stores.failed.page()
        module.write_text(NEW)
        site.run("reload", "--wait", *site.where, "--runtime-dir", str(site.path / "run"))
        eventually(lambda: 2 == len(site.trail(event="end")))
    log = pool.log()

    assert {(1, None), (None, "USD")} == {
        (line.get("shipped"), line.get("currency")) for line in site.trail(event="end")
    }
    delays = delays_of("shop_jobs.ship", log)
    assert ["1.0", "2.0", "4.0", "8.0", "16.0"][: len(delays)] == delays
    assert "this worker runs code of generation 1, imported at 20" in log
    assert "Z: if the job is newer, reload the pool" in log
    assert "job raised" not in log


def test_a_job_that_no_code_comes_to_know_fails_at_its_last_try_and_at_once_without_the_option(site: Site) -> None:
    (site.path / "shop_jobs.py").write_text(OLD)
    for name, data in (("shop_jobs.ship", None), ("shop_jobs.bill", {"no": 1})):
        site.queue.push(name, data, options={"tries": 2})
    site.queue.push("shop_jobs.ship", options={"tries": 1})
    # The first worker has left before they are due again.
    flags = ["--modules", "shop_jobs", "--unknown-retry", "8"]
    first = site.work(*flags).stderr
    second = site.run("work", *site.flags("--stop-when-empty-for", "12", *flags)).stderr
    site.queue.push("shop_jobs.ship", **TRIES)
    third = site.work("--modules", "shop_jobs", "--unknown-retry", "0").stderr

    assert (2, 1) == (first.count("job released"), first.count("job failed"))
    assert (0, 2) == (second.count("job released"), second.count("job failed"))
    assert (0, 1) == (third.count("job released"), third.count("job failed"))
    assert [] == [log for log in (first, second, third) if "job raised" in log]
    assert [1, 1, 2, 2] == sorted(row.attempts for row in site.queue.stores.failed.page(count=9))


def test_what_is_queued_or_has_failed_under_an_old_name_runs_under_its_alias(site: Site) -> None:
    (site.path / "shop_jobs.py").write_text(OLD)
    site.queue.push("shop_jobs.charge", {"order": 7})
    site.work("--modules", "shop_jobs")
    assert 1 == len(site.queue.stores.failed.page())
    (site.path / "shop_jobs.py").write_text(NEW)
    site.queue.push("shop_jobs.bill", {"order": 8})
    site.run("retry", "all", *site.where)
    site.work("--modules", "shop_jobs")

    assert {7, 8} == {line["order"] for line in site.trail(event="end")}
    assert [] == site.queue.stores.failed.page()
