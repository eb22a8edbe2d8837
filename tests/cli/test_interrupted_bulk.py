"""What is done with many jobs may be killed or interrupted at any moment: each job is in exactly one place."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from queuepool.payload.envelope import decode
from tests.support import warm
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands
from tests.support.pools import Site
from tests.support.terminal import CTRL_C, Terminal

pytestmark = pytest.mark.every_store("at")
COUNT = 3000


@pytest.fixture(params=["redis", "sqlite", "postgres", "mariadb"])
def at(request: pytest.FixtureRequest):
    with site_on(request.param, request) as found:
        yield found


def ready(site: Site, queue: str = "default") -> list[str]:
    return [decode(raw, 0).id for raw in site.queue.stores.queue.first(queue, 10_000)]


def failed(site: Site) -> list[str]:
    return [record.id for record in site.queue.stores.failed.page(count=10_000)]


def killed(site: Site, *words: str, once: str) -> int:
    """Kill the command as soon as there is a job in the queue ``once``; returns how many there were then."""
    command = [sys.executable, "-m", "queuepool", words[0], *site.where, *words[1:]]
    process = warm.start(
        command, env=site.env(), cwd=site.path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    eventually(lambda: site.queue.sizes(once).total)
    process.kill()
    process.wait()
    return site.queue.sizes(once).total


def test_a_retry_that_is_killed_leaves_each_job_in_one_place(at):
    ids = failed_in_thousands(at.queue, COUNT)
    killed(at, "retry", "all", "--yes", once="default")
    back, left = ready(at), failed(at)

    assert sorted(ids) == sorted(back + left)
    at.run("retry", *at.where, "--name", "do", "--yes", check=bool(left))
    assert (sorted(ids), []) == (sorted(ready(at)), failed(at))


def test_a_move_that_is_killed_leaves_each_job_in_one_place(at):
    ids = at.queue.bulk([("do", {"number": number}) for number in range(COUNT)])
    later = [at.push(delay=600) for _ in range(3)]
    killed(at, "move", "default", "other", "--yes", once="other")
    here, there = ready(at), ready(at, "other")
    delayed = sum(at.queue.sizes(queue).delayed for queue in ("default", "other"))

    assert (sorted(ids), len(later)) == (sorted(here + there), delayed)
    at.run("move", *at.where, "default", "other", "--yes")
    assert (sorted(ids), 3, 0) == (
        sorted(ready(at, "other")), at.queue.sizes("other").delayed, at.queue.size("default")
    )  # fmt: skip


def test_ctrl_c_ends_it_between_two_batches_and_the_count_is_true(site):
    failed_in_thousands(site.queue, 30_000)
    command = [sys.executable, "-m", "queuepool", "retry", *site.where, "--name", "do"]
    terminal = Terminal(command, 100, 20, site.env(), site.path)
    terminal.shows("Put back 30000 failed jobs on connection default", "default 30000? [y/N]")
    terminal.press("y\n")
    terminal.shows("jobs put back")
    terminal.press(CTRL_C)
    said = terminal.shows("not finished: ")
    eventually(lambda: not terminal.process.isalive())
    count = int(re.findall(r"not finished: (\d+) jobs? put back", said)[0])

    assert 130 == terminal.process.exitstatus
    assert 0 < count < 30_000
    assert (count, 30_000 - count) == (site.queue.size(), site.queue.stores.failed.count())
