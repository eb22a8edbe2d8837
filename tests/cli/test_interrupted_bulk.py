"""What is done with many jobs may be killed or interrupted at any moment: each job is in exactly one place."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from queuepool.payload.envelope import decode
from tests.support import warm
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands
from tests.support.pools import Site
from tests.support.terminal import CTRL_C, Forked, Terminal

pytestmark = pytest.mark.every_store("at")
COUNT = 3000
#: how many sessions a server has in this database
SESSIONS = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()",
    "mysql": "SELECT count(*) FROM information_schema.processlist WHERE db = database()",
}
SESSIONS["mariadb"] = SESSIONS["mysql"]


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
    assert 0 == site.queue.sizes(once).total  # our own session is there from now on
    before = sessions(site)
    process = warm.start(
        command, env=site.env(), cwd=site.path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    eventually(lambda: site.queue.sizes(once).total)
    process.kill()
    process.wait()
    eventually(lambda: sessions(site) <= before)
    return site.queue.sizes(once).total


def sessions(site: Site) -> int:
    """Of a server that carries out what it was sent also once the sender is dead, and then ends its session."""
    client = site.queue.stores.client
    name = client.engine.dialect.name if hasattr(client, "engine") else "redis"
    counted = SESSIONS.get(name)
    return client.ask(lambda one: int(one.exec_driver_sql(counted).scalar_one())) if counted else 0


def test_a_retry_that_is_killed_leaves_each_job_in_one_place(at):
    ids = failed_in_thousands(at.queue, COUNT)
    killed(at, "retry", "all", "--yes", once="default")
    back, left = ready(at), failed(at)

    assert sorted(ids) == sorted(back + left)
    at.run("retry", *at.where, "--name", "do", "--yes", check=bool(left))
    assert (sorted(ids), []) == (sorted(ready(at)), failed(at))


@pytest.mark.thorough("a killed retry is the same loop; stores/contract/ moves a batch in one step")
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


@pytest.mark.thorough("a kill is tested above; unit/test_bulk_counts.py counts what was done before a failure")
def test_ctrl_c_ends_it_between_two_batches_and_the_count_is_true(away, own_server):
    """It comes while a batch is under way, which waits at the server meanwhile."""
    failed_in_thousands(away.queue, COUNT)
    words = ["retry", *away.where, "--name", "do"]
    terminal = Terminal(Forked(words, 200, 20, away.env(), away.path), 200, 20)
    terminal.shows(f"Put back {COUNT} failed jobs on connection default", f"default {COUNT}? [y/N]")
    own_server.say("CLIENT", "PAUSE", 600_000, "WRITE")
    terminal.press("y\n")
    eventually(lambda: has_sigint(terminal, "SigBlk"))
    terminal.press(CTRL_C)
    eventually(lambda: has_sigint(terminal, "ShdPnd"))
    own_server.say("CLIENT", "UNPAUSE")

    assert 130 == terminal.ends()
    count = int(re.findall(r"not finished: (\d+) jobs? put back", terminal.text())[0])
    assert 0 < count < COUNT
    assert (count, COUNT - count) == (away.queue.size(), away.queue.stores.failed.count())


def has_sigint(terminal: Terminal, among: str) -> bool:
    """Whether the kernel has it among these signals of the command: the blocked ones, or those that wait."""
    status = Path(f"/proc/{terminal.process.pid}/status").read_text()
    [mask] = re.findall(rf"^{among}:\s*(\w+)", status, re.MULTILINE)
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)
