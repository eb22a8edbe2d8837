"""A real Prometheus scrapes a real pool of 300 queues and 1,000 names of jobs, as the documentation says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from queuepool import chain
from queuepool.jobs.composing import flow_of
from tests.metrics.test_prometheus_files import ROOT, RULES, dashboard, filled, rules
from tests.support.eventually import eventually
from tests.support.http_pages import Pages
from tests.support.pools import Site
from tests.support.prometheus import Prometheus, prometheus

QUEUES = [f"tenant-{number:03}" for number in range(300)]
LAST = QUEUES[-1]
JOBS = """
from pathlib import Path

from queuepool import Concurrency, job
from tests.support.eventually import eventually


@job("job-1000")
def member():
    pass


@job("job-1001", limits=[Concurrency("gate", 1)])
def limited(gate):
    eventually(Path(gate).exists, within=300.0)


def named(number):
    @job(f"job-{number:04}")
    def run(fails=False, gate=""):
        if fails:
            raise ValueError("as it was asked to")
        if gate:
            eventually(Path(gate).exists, within=300.0)


for number in range(1000):
    named(number)
"""
ALERTS = "[pool]\n[alerts]\nwait = 1\n"
#: asked for by a panel, and empty while every address answers
SILENT = 'sum by (instance) (up{job="queuepool"} == 0)'
#: it cannot have the third worker that a job which has waited for longer than a second calls for
BOUNDS = ("--workers", "2", "--min-workers", "1", "--max-workers", "2")
SCALES = (*BOUNDS, "--target-wait", "1", "--scale-down-after", "1h", "--memory-reserve", "0")
#: seconds
DAY = 86_400
#: the looks of a pool for alerts, ten seconds apart, on a busy machine
TWO_LOOKS = 60.0


def config(address: str) -> str:
    """The scrape job of the documentation, and our rules; more often, as a test has no minutes, but not so
    often that a busy machine is not done with one page when the next is asked for."""
    [documented] = re.findall(r"```yaml\n(scrape_configs:\n.*?)```", (ROOT / "docs/metrics.md").read_text(), re.DOTALL)
    own = documented.replace("127.0.0.1:9465", address)
    assert own != documented
    return f"global: {{scrape_interval: 3s, evaluation_interval: 1s}}\nrule_files: [{RULES}]\n{own}"


def targets() -> Iterator[tuple[str, str]]:
    """Title and expression of each panel."""
    for panel in dashboard()["panels"]:
        yield from ((panel["title"], filled(target["expr"])) for target in panel.get("targets", ()))


def fail(site: Site, count: int) -> None:
    """Let jobs of one name fail in the last queue."""
    site.queue.bulk([("job-0007", {"fails": True})] * count, queue=LAST, options={"maxTries": 1})


#: the counter of those jobs
FAILURES = f'queuepool_jobs_total{{pool="default",queue="{LAST}",job_name="job-0007",outcome="failed"}}'


def expression_of(alert: str) -> str:
    [found] = re.findall(rf"- alert: {alert}\n +expr: (.*)", RULES.read_text())
    return str(found)


def raised(found: Prometheus) -> set[str]:
    """The rules whose condition holds."""
    return {rule for rule in rules() if found.series(rule)}


@pytest.mark.timeout(450)  # it waits for looks that are ten seconds apart, again and again
@pytest.mark.thorough("a minute of a real Prometheus; promtool reads the same rules")
def test_each_panel_and_each_rule_shows_a_pool_as_it_is(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the pool itself watches its last queue as its first."""
    (site.path / "manyjobs.py").write_text(JOBS)
    monkeypatch.syspath_prepend(str(site.path))
    member = import_module("manyjobs").member
    pages, gate = Pages(), site.path / "gate"
    flags = (*SCALES, "--listen", pages.address, "--modules", "manyjobs", "--queue", ",".join(QUEUES))
    with prometheus(tmp_path, config(pages.address)) as found:
        with site.pool(*flags, config=ALERTS):
            fail(site, 1)
            # A counter that begins with its last value has not risen.
            eventually(lambda: found.values(FAILURES, "queue") == {LAST: 1.0})
            eventually(lambda: found.series(f'queuepool_queue_jobs{{queue="{LAST}"}}'))
            eventually(lambda: set() == raised(found))  # a scrape that a busy machine delays for a second has failed

            done = flow_of(chain(*[member.using(queue=QUEUES[0]).call()] * 2)).push_to(site.queue)
            flow_of(chain(member.using(queue=QUEUES[0], delay=DAY).call(), member.call())).push_to(site.queue)
            assert "done" == done.wait(60).state
            fail(site, 20)
            eventually(lambda: pages.value(FAILURES) == 21.0)
            for number in range(1000):
                site.queue.push(f"job-{number:04}", {}, queue=QUEUES[number % 300])
            eventually(lambda: found.values("sum(queuepool_jobs_total)", "") == {"": 1023.0}, within=120.0)
            held = {"gate": str(gate)}
            site.queue.bulk([("job-0001", held), ("job-1001", held)], queue=QUEUES[0], options={"timeout": 300})
            eventually(lambda: pages.value('queuepool_workers{pool="default",state="busy"}') == 2.0)
            site.queue.push("job-0002", {}, queue=LAST)

            eventually(lambda: found.values('queuepool_alert{kind="wait"}', "subject") == {LAST: 1.0}, TWO_LOOKS)
            expected = {expression_of("QueuepoolFailures"), expression_of("QueuepoolHeld")}
            waits = {expression_of("QueuepoolWait")}  # for a minute: it may, on a busy machine
            eventually(lambda: expected == raised(found) - waits, TWO_LOOKS)
            [failed] = eventually(lambda: found.series(expression_of("QueuepoolFailures")))
            # One after the other, as all are empty after a scrape that took too long. A growth over some minutes needs
            # two moments, 15 s apart.
            for panel in {target for _, target in targets()} - {SILENT}:
                eventually(partial(found.series, panel), TWO_LOOKS)
            eventually(lambda: not found.series(SILENT))
            by_job = [target for title, target in targets() if "by job" in title]
            shown = eventually(lambda: [one for target in by_job for one in found.series(target)])
            attempts = eventually(lambda: found.values("sum by (queue) (queuepool_jobs_total)", "queue"))
            gate.touch()
            eventually(lambda: pages.value('queuepool_workers{pool="default",state="idle"}') == 2.0)
        eventually(lambda: {expression_of("QueuepoolDown")} == raised(found) - {expression_of("QueuepoolFailures")})
        [gone] = found.series(expression_of("QueuepoolDown"))
        assert [{"instance": pages.address}] == found.series(SILENT)

    assert {"pool": "default", "queue": LAST, "job_name": "job-0007"} == failed
    assert {"job": "queuepool", "instance": pages.address} == {name: gone[name] for name in ("job", "instance")}
    assert set(QUEUES) == set(attempts)
    assert {LAST: 24.0, QUEUES[1]: 4.0} == {queue: attempts[queue] for queue in (LAST, QUEUES[1])}
    assert all(re.fullmatch(r"job-\d{4}|_other", one["job_name"]) for one in shown)
