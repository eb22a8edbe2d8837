"""Every verb with a file of several pools, two of them on one connection: it means all of them, or ``--pool``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from queuepool.config.loader import load
from queuepool.jobs.client import Queue
from tests.support import in_process
from tests.support.commands import Done
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site
from tests.support.redis_server import PREFIX
from tests.support.terminal import terminal

FILE = """
[pool]
runtime_dir = {path}/run
modules = tests.support.poolapp
workers = 1
[pool:web]
queue = high,default
connection = shop
[pool:mail]
queue = mail
connection = shop
[pool:imports]
queue = imports,default
connection = depot
[connection:shop]
url = {url}
prefix = {prefix}
[connection:depot]
url = sqlite:///{path}/depot.db
"""
LOCK = "laravel_unique_job:do:a"


@dataclass
class Place:
    """The file, and the queue of each of its connections."""

    site: Site
    shop: Queue
    depot: Queue
    capsys: pytest.CaptureFixture[str]

    @property
    def file(self) -> list[str]:
        return ["-c", str(self.site.path / "several.ini")]

    def run(self, *words: str, code: int = 0) -> str:
        """What the verb says, on both streams."""
        done = self._done(*words)
        assert code == done.returncode, done.stderr
        return done.stdout + done.stderr

    def rows(self, *words: str, code: int = 0) -> Any:
        done = self._done(*words, "--json")
        assert code == done.returncode, done.stderr
        return json.loads(done.stdout)

    def _done(self, *words: str) -> Done:
        """In this process, unless it imports the modules of the pools."""
        if words[0] in ("push", "work"):
            return self.site.run(*words, *self.file, check=False)
        return in_process.queuepool(self.capsys, *words, *self.file)

    def fail(self) -> dict[str, str]:
        """A failed job on each queue but ``default``; the ids by queue."""
        found = {}
        for pool, queue, on in (
            ("web", "high", self.shop),
            ("mail", "mail", self.shop),
            ("imports", "imports", self.depot),
        ):
            found[queue] = str(on.push("do", {"mode": "raise"}, queue=queue))
            self.run("work", "--pool", pool, "--stop-when-empty")
        return found

    def fail_of_running(self) -> list[str]:
        """The ids of jobs that pools which run have failed."""
        ids = [str(on.push("do", {"mode": "raise"}, queue="default")) for on in (self.shop, self.depot)]
        eventually(lambda: 2 == len(self.rows("failed")))
        return ids

    def left(self) -> set[str]:
        """The queues of the failed jobs that are kept."""
        return {record.queue for on in (self.shop, self.depot) for record in on.stores.failed.page()}


@pytest.fixture
def place(site: Site, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    path = site.path / "several.ini"
    path.write_text(FILE.format(path=site.path, url=site.connection.url, prefix=PREFIX))
    connections = load(path).connections
    with closing(Queue(connections["shop"])) as shop, closing(Queue(connections["depot"])) as depot:
        made = Place(site, shop, depot, capsys)
        made.run("migrate")
        yield made


@contextmanager
def started(place: Place, *flags: str, count: int) -> Iterator[RunningPool]:
    """So many pools of the file, at work."""
    pool = RunningPool(place.site, [*place.file, "--runtime-dir", str(place.site.path / "run"), *flags], "")
    try:
        eventually(lambda: count == len(pool.pids(r"master \[\w+\] running")) == len(pool.workers()))
        yield pool
        pool.end()
    finally:
        pool.kill_all()


@pytest.fixture
def running(place: Place) -> Iterator[RunningPool]:
    """The three pools under their parent."""
    with started(place, count=3) as pool:
        yield pool


# What is shown


def test_queues_of_all_connections_are_counted_and_those_of_one_pool_alone(place):
    place.shop.push("do", queue="high")
    place.depot.push("do", queue="imports")
    place.depot.push("do", queue="strays")
    everything = [("shop", "high", 1), ("shop", "default", 0), ("shop", "mail", 0)]
    everything += [("depot", "imports", 1), ("depot", "default", 0), ("depot", "strays", 1)]

    for verb in ("size", "monitor"):
        assert everything == [(row["connection"], row["queue"], row["size"]) for row in place.rows(verb)]
        assert ["imports", "default"] == [row["queue"] for row in place.rows(verb, "--pool", "imports")]
        assert [("shop", 0), ("depot", 1)] == [(row["connection"], row["size"]) for row in place.rows(verb, "strays")]
    assert ["connection  queue    size".upper().split(), ["shop", "high", "1"]] == [
        line.split() for line in place.run("size").splitlines()[:2]
    ]


@pytest.mark.thorough("the test before it counts queues that no pool serves")
def test_a_queue_that_is_nowhere_is_noted(place):
    place.depot.push("do", queue="strays")

    words = f"note: no pool of {place.file[1]} serves queue billing, and it holds nothing\n"
    for verb in ("size", "monitor"):
        assert words in place.run(verb, "billing")
        assert "note:" not in place.run(verb, "strays", "high")


def test_failures_and_quarantines_of_all_connections_are_listed_and_those_of_one_pool_alone(place):
    ids = place.fail()
    for pool, queue, on in (("web", "high", place.shop), ("imports", "imports", place.depot)):
        on.push_raw(b"not a job", queue=queue)
        place.run("work", "--pool", pool, "--stop-when-empty")

    assert {*ids.values()} == {row["id"] for row in place.rows("failed")}
    assert [ids["mail"]] == [row["id"] for row in place.rows("failed", "--pool", "mail")]
    assert "queue: imports\n" in place.run("failed", ids["imports"])
    assert "not found" in place.run("failed", ids["imports"], "--pool", "web", code=1)
    assert [("shop", "high"), ("depot", "imports")] == [
        (row["connection"], row["queue"]) for row in place.rows("quarantine", "list")
    ]
    [imports] = place.rows("quarantine", "list", "--pool", "imports")
    assert "payload: not a job\n" in place.run("quarantine", "show", "imports", imports["id"])
    assert "put back 1 payload of queue high on connection shop" in place.run("quarantine", "retry", "high", "--all")
    assert "dropped 1 payload of queue imports on connection depot\n" == place.run("quarantine", "drop", "--all")
    assert [] == place.rows("quarantine", "list")
    assert b"not a job" == place.shop.sizes("high").oldest


def test_a_connection_that_is_away_hides_no_other(place):
    place.shop.push("do", queue="high")
    path = place.site.path / "several.ini"
    path.write_text(path.read_text().replace("depot.db", "none/depot.db"))
    listed = {verb: place.rows(verb, code=1) for verb in ("size", "monitor", "failed")}

    assert (
        ["high", "default", "mail"]
        == [row["queue"] for row in listed["size"]]
        == [row["queue"] for row in listed["monitor"]]
    )
    assert "connection depot: " in place.run("size", code=1)


def test_histories_and_locks_are_those_of_all_connections(place):
    for on in (place.shop, place.depot):
        assert on.push("do", {}, unique_id="a", queue="high")
    documents = place.rows("history")

    assert ["shop", "depot"] == [one["connection"] for one in documents]
    assert ["connection shop:", "connection depot:"] == place.run("history").splitlines()[::2]
    assert "from" in place.rows("history", "--pool", "imports")
    assert [("shop", LOCK), ("depot", LOCK)] == [
        (row["connection"], row["lock"]) for row in place.rows("locks", "list")
    ]
    assert f"freed {LOCK}\n" == place.run("locks", "free", "do:a", "--pool", "imports")
    assert ["shop"] == [row["connection"] for row in place.rows("locks", "list")]
    assert "locks belong to all pools on connection shop, also mail" in place.run(
        "locks", "list", "--pool", "web", code=2
    )


def test_a_job_is_found_on_whichever_connection_it_is(place):
    tracked = place.depot.push("do", queue="imports", track=600)
    waiting = place.depot.push("do", queue="imports")

    assert ("queued", "its state") == tuple(place.rows("job", tracked)[key] for key in ("state", "found"))
    assert "the ready jobs of queue imports" == place.rows("job", waiting)["found"]
    assert 2 == place.run("job", "nowhere", code=1).count("it is not among the failed jobs")
    assert 1 == place.run("job", waiting, "--pool", "web", code=1).count("it is not among the failed jobs")
    assert "after 0.1 s" in place.run("job", tracked, "--wait", "--timeout", "0.1", code=1)


# What is changed


def test_a_failed_job_is_put_back_or_dropped_where_it_is(place):
    ids = place.fail()

    assert "not found" in place.run("retry", ids["imports"], "--pool", "web", code=1)
    assert "1 job put back\n" == place.run("retry", ids["imports"])
    assert 1 == place.depot.size("imports")
    assert "dropped 2 failed jobs\n" == place.run("forget", ids["high"], ids["mail"])
    assert set() == place.left()


def test_what_is_done_with_all_failed_jobs_is_done_with_those_of_the_pool(place):
    place.fail()

    assert "dropped 0 failed jobs of queues high, default on connection shop\n" == place.run(
        "prune-failed", "--hours", "1", "--pool", "web"
    )
    assert "dropped 1 failed job of queue mail on connection shop\n" == place.run("flush", "--pool", "mail")
    assert {"high", "imports"} == place.left()
    assert "1 job put back on connection shop: high 1\n" == place.run("retry", "all", "--pool", "web")
    assert {"imports"} == place.left()
    assert (1, 0) == (place.shop.size("high"), place.shop.size("mail"))
    assert ["dropped 0 failed jobs on connection shop", "dropped 1 failed job on connection depot"] == place.run(
        "flush"
    ).splitlines()


def test_the_name_of_a_pool_chooses_no_failed_jobs_where_no_file_says_its_queues(place):
    refused = place.site.run("flush", *place.site.where, "--pool", "web", check=False)

    assert (2, True) == (refused.returncode, "it does not say which queues are meant" in refused.stderr)


def test_failed_jobs_of_connections_that_share_their_place_are_each_ones_own(place):
    """Once in the list, and put back on the queue of their own connection."""
    path = place.site.path / "several.ini"
    shared = f"failed_url = sqlite:///{place.site.path}/depot.db"
    path.write_text(path.read_text().replace(f"prefix = {PREFIX}", f"prefix = {PREFIX}\n{shared}"))
    place.shop.push("do", {"mode": "raise"}, queue="default")
    place.run("work", "--pool", "web", "--stop-when-empty")
    with closing(Queue(load(path).connections["shop"])) as shop:
        shop.stores.forwarder.forward()
    [row] = place.rows("failed")
    told = place.run("retry", "all")

    assert ("shop", "default") == (row["connection"], row["queue"])
    assert ["1 job put back on connection shop: default 1", "0 jobs put back on connection depot"] == told.splitlines()
    assert (1, 0) == (place.shop.size("default"), place.depot.size("default"))


def test_a_queue_says_which_connection_is_meant_or_a_pool_must(place):
    place.run("push", "do", "--queue", "imports")
    place.run("push", "do", "--queue", "mail")
    place.run("pause", "imports", "mail")

    assert (1, 1) == (place.depot.size("imports"), place.shop.size("mail"))
    assert {"imports"} == place.depot.stores.control.read(("imports", "mail")).paused
    assert {"mail"} == place.shop.stores.control.read(("imports", "mail")).paused
    place.run("continue", "mail", "imports")
    assert "pools on several connections serve queue default: name a pool" in place.run("push", "do", code=2)
    assert "no pool serves queue strays: name a pool" in place.run("pause", "strays", code=2)
    place.run("push", "do", "--pool", "imports")
    assert 1 == place.depot.size("default")
    assert "queue mail is served by mail, not by pool web" in place.run(
        "clear", "mail", "--pool", "web", "--force", code=2
    )
    assert "dropped 1 job of mail\n" == place.run("clear", "mail", "--pool", "mail", "--force")
    assert "dropped 1 job of imports on connection depot\n" in place.run("clear", "--force")
    assert 0 == place.depot.size("default")


def test_what_is_for_a_whole_connection_is_refused_for_one_of_its_pools(place):
    restart = place.run("restart", "--pool", "web", code=2)

    assert "a restart reaches all pools on connection shop, also mail: leave out --pool, or replace" in restart
    assert "queuepool reload --pool web" in restart
    for verb in ("down", "up"):
        assert "maintenance mode holds all pools on connection shop" in place.run(verb, "--pool", "mail", code=2)
    assert not place.shop.stores.control.read(()).down
    assert "restart broadcast on connection depot" in place.run("restart", "--pool", "imports")
    assert 2 == place.run("restart").count("restart broadcast on connection")


def test_the_pause_of_all_schedules_is_refused_for_one_pool_of_several(place):
    path = place.site.path / "several.ini"
    path.write_text(f"{path.read_text()}[schedule:nightly]\njob = do\ncron = 0 2 * * *\nconnection = shop\n")

    for verb in ("pause", "resume"):
        assert "concerns all pools on connection shop" in place.run("schedule", verb, "--pool", "web", code=2)
    assert "schedule nightly: paused" in place.run("schedule", "pause", "nightly", "--pool", "web")


# What runs here


def test_the_local_pools_are_paused_scaled_and_stopped_together_with_their_parent(place, running):
    assert ["pool web: paused", "pool mail: paused", "pool imports: paused"] == [
        line.partition(": its")[0] for line in place.run("pause").splitlines()
    ]
    eventually(lambda: 3 == len(running.pids(r"worker 1 \[\w+\] paused")))
    assert 3 == place.run("continue").count("continues")
    assert "pool mail has 2 workers" in place.run("scale", "2")
    eventually(lambda: 6 == len(running.workers()))
    assert "pool web was started with room for" in place.run("scale", "9000", code=2)
    assert "pool web has 1 worker\n" == place.run("scale", "1", "--pool", "web")
    assert ["pool web: stopped", "pool mail: stopped", "pool imports: stopped"] == place.run(
        "stop", "--wait", "30"
    ).splitlines()
    assert 0 == running.wait()
    assert "pool 'web' is not running" in place.run("stop", code=3)


@pytest.mark.thorough("the test before it tells all of them what to do, and sees that none runs")
def test_of_several_pools_those_that_do_not_run_are_named(place):
    with started(place, "--pool", "mail", count=1):
        told = place.run("pause")
        place.run("continue", "--pool", "mail")

    assert "pool mail: paused" in told
    assert "note: pool 'web' is not running" in told


# At a terminal


def test_it_asks_whose_jobs_are_meant_and_takes_no_for_an_answer(place):
    ids = place.fail()
    asked = {
        ("retry", "all"): "Put back 2 failed jobs on connection shop",
        ("flush", "--pool", "mail"): "Drop 1 failed job on connection shop",
        ("prune-failed", "--hours", "0", "--pool", "imports"): "Drop 1 failed job on connection depot",
        ("forget", *ids.values()): "Drop 3 failed jobs: ",
    }
    for words, question in asked.items():
        assert 1 == declined(place, *words, question=question)
    assert {"high", "mail", "imports"} == place.left()

    for words in (("flush", "--pool", "mail"), ("forget", ids["high"], ids["imports"])):
        with terminal(*words, "--force", *place.file, cwd=place.site.path, columns=300) as screen:
            assert 0 == screen.ends()
    assert set() == place.left()


def declined(place: Place, *words: str, question: str) -> int:
    """Says no to this question at a terminal; returns the exit code."""
    with terminal(*words, *place.file, cwd=place.site.path, columns=300) as screen:
        screen.shows(question, "[y/N]")
        screen.press("n\n")
        screen.shows("nothing was")
        return screen.ends()


def test_all_of_a_quarantine_is_asked_for(place):
    place.shop.push_raw(b"not a job", queue="mail")
    place.run("work", "--pool", "mail", "--stop-when-empty")
    for verb in ("drop", "retry"):
        assert 1 == declined(place, "quarantine", verb, "--all", question="1 payload of queue mail on ")
    assert 1 == len(place.rows("quarantine", "list"))


@pytest.mark.thorough("every list, one after the other")
def test_every_list_fits_eighty_columns_of_a_terminal_and_is_whole_in_a_pipe(place, running):
    ids = place.fail_of_running()
    place.shop.push_raw(b"not a job" * 20, queue="mail")
    gate = place.site.path / "gate"
    place.shop.push("do", {"mode": "until", "gate": str(gate)}, queue="mail")
    eventually(lambda: place.rows("quarantine", "list") and place.site.trail(event="start", mode="until"))
    wanted = {
        ("failed",): ids, ("monitor",): ["imports", "OK"], ("status",): ["worker 1", "of 60 s"],
        ("quarantine", "list"): ["mail"], ("size",): ["imports"],
    }  # fmt: skip
    shown = {words: on_a_terminal(place, words) for words in wanted}
    gate.touch()

    for words, whole in wanted.items():
        # What cannot be folded is a path.
        assert [] == [line for line in shown[words].splitlines() if len(line) > 80 and " " in line.strip()]
        assert all(word in shown[words] for word in whole)
    assert all(word in place.run("failed") for word in (*ids, "ATTEMPTS", "CONNECTION", "as asked"))


def on_a_terminal(place: Place, words: Sequence[str]) -> str:
    """What 80 columns are sent."""
    with terminal(*words, *place.file, cwd=place.site.path, columns=80) as screen:
        assert 0 == screen.ends()
        return screen.sent.decode()
