"""A pool and its producers over Sentinel: primaries are replaced under load, and a ledger says what is lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from tests.support.eventually import eventually
from tests.support.overlapping import overlapping
from tests.support.pools import RunningPool, Site
from tests.support.redis_server import valkey_binary
from tests.support.sentinels import NAME, Process, Sentinels, running

#: a job that runs all the time, as what is lost of a job that nobody looks at stays unseen
SLOW = 8.0
#: seconds for which two workers may run one job after a failover, before the first of them is killed
AT_ONCE = 3.0
LEASES = "[connection]\nretry_after = 15\n"
#: jobs that are due one after the other, for so many twentieths of a second
DELAYED = 300
#: seconds from a promotion until jobs run again: some tenths where the machine is not crowded, as tests may find it;
#: who does not follow the primary waits for the end of a lease
AT_WORK = 10.0


@pytest.fixture
def sentinels(tmp_path: Path) -> Iterator[Sentinels]:
    with running(tmp_path) as found:
        yield found


@pytest.fixture
def over(sentinels: Sentinels, tmp_path: Path) -> Iterator[Site]:
    """A place for pools whose store is named by sentinels."""
    connection = ConnectionSettings(url=sentinels.url)
    queue = Queue(connection)
    yield Site(connection, tmp_path, queue)
    queue.close()


@dataclass
class Load:
    """A producer that pushes all the time: the jobs that were acknowledged, each with its Unix time."""

    site: Site
    acked: dict[str, float] = field(default_factory=dict)
    unsure: int = 0
    _is_over: bool = False

    def run(self) -> None:
        number = 0
        while not self._is_over:
            number += 1
            try:
                self.site.push(tag=str(number))
            except StoreDown:
                self.unsure += 1
            else:
                self.acked[str(number)] = time.time()
            threading.Event().wait(0.008)

    def since(self, moment: float) -> int:
        """How many were acknowledged after that."""
        return sum(at > moment for at in self.acked.copy().values())

    @contextmanager
    def pushing(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            eventually(lambda: len(self.acked) > DELAYED + 50)
            yield
        finally:
            self._is_over = True
            thread.join()


@dataclass
class Ledger:
    """What became of the acknowledged jobs, once the queue is empty."""

    #: when those were acknowledged that never ran
    lost: list[float]
    #: when those began first that began more than once
    twice: list[float]
    #: how often the slow job began
    slow: int
    #: for each time that it began again, when it had ended, or begun if it had not
    slow_again: list[float]
    starts: list[float]
    #: the jobs that began again while they ran, each once for each time
    overlaps: list[str]
    #: how often the other long jobs began
    long: dict[str, int]

    @classmethod
    def of(cls, load: Load) -> Ledger:
        site = load.site
        starts = [note for note in site.trail(event="start") if note["tag"] != "slow"]
        counted = Counter(note["tag"] for note in starts)
        lost = [at for tag, at in load.acked.items() if tag not in counted]
        first = {note["tag"]: note["at"] for note in reversed(starts)}
        twice = [first[tag] for tag, count in counted.items() if count > 1]
        slow = sorted((note["at"], note["event"]) for note in site.trail(tag="slow"))
        again = [before for (before, _), (_, event) in pairwise(slow) if event == "start"]
        slow_starts = sum(event == "start" for _, event in slow)
        long = {tag: count for tag, count in counted.items() if tag.startswith("long")}
        begun = sorted(note["at"] for note in starts)
        return cls(lost, twice, slow_starts, again, begun, list(overlaps(site)), long)

    def is_bounded(self, since: float, until: float) -> bool:
        """Whether nothing was lost, or run again, but what was done in this time; settling takes a moment."""
        again = [*self.twice, *self.slow_again]
        print(f"lost {len(self.lost)}, run again {len(again)}")
        return all(since - 0.1 < at < until for at in self.lost) and all(since - 1 < at < until for at in again)

    def work_after(self, switch: float) -> float:
        """Seconds from the switch to the first job that began after it."""
        found = next(at for at in self.starts if at > switch) - switch
        print(f"at work {found:.3f} s after the switch")
        return found


def overlaps(site: Site) -> Iterator[str]:
    """The jobs that began before their last run had ended, or its process was noted as killed."""
    under_way: dict[str, int] = {}
    for note in sorted(site.trail(), key=lambda note: note["at"]):
        if note["event"] == "killed":
            under_way = {tag: pid for tag, pid in under_way.items() if pid != note["pid"]}
        elif note["event"] == "start":
            if note["tag"] in under_way:
                yield note["tag"]
            under_way[note["tag"]] = note["pid"]
        elif note["event"] == "end":
            under_way.pop(note["tag"], None)


def resumes(site: Site, load: Load, since: float) -> bool:
    """Whether pushes and jobs of after that moment have succeeded."""
    return load.since(since) > 100 and any(note["at"] > since + 0.5 for note in site.trail(event="end"))


def until(sentinels: Sentinels, takes: float = 0.0) -> float:
    """Until when jobs may be lost, where a failover goes on for so many seconds after all have heard of the switch.

    A crowded machine's sentinels may take the next primary for dead as well. What it had not handed on is then lost,
    until the pool has heard of the one after it.
    """
    return sentinels.all_heard() + (takes if len(sentinels.switches()) == 1 else max(takes, 1.0))


def few_lost_with_the_first_primary(ledger: Ledger, switches: list[tuple[float, int]]) -> bool:
    """What it had taken and not yet handed on: some ms of pushes at most.

    Of the next one it may be a second of them, as it goes on where only a crowded machine's sentinels took it for dead.
    """
    first, _ = switches[0]
    return len([at for at in ledger.lost if at < first]) < 20


@contextmanager
def loaded(site: Site, *flags: str, workers: int = 3, config: str = LEASES) -> Iterator[tuple[RunningPool, Load]]:
    """A pool, one of whose workers is busy all the time, and a producer."""
    load = Load(site)
    with site.pool("--workers", str(workers), *flags, config=config) as pool:
        site.push("sleep", seconds=SLOW, tag="slow")
        for number in range(DELAYED):  # the pool has work whenever the producer is away
            site.push(tag=f"due{number}", delay=number * 0.05)
            load.acked[f"due{number}"] = time.time()
        with load.pushing():
            yield pool, load
        # A job whose settlement was lost runs again when its lease ends.
        eventually(lambda: site.queue.size() == 0, within=60)


@pytest.mark.fault("F47")
def test_a_killed_primary_costs_no_acknowledged_job_and_all_are_at_work_at_the_switch(sentinels, over):
    with loaded(over) as (pool, load):
        killed = time.time()
        sentinels.primary().kill()
        at, _ = eventually(sentinels.switches)[0]
        eventually(lambda: resumes(over, load, at))

    ledger, switches = Ledger.of(load), sentinels.switches()
    assert ledger.is_bounded(killed, until(sentinels))
    assert few_lost_with_the_first_primary(ledger, switches)
    assert 1 <= ledger.slow <= len(switches)
    assert ledger.work_after(at) < AT_WORK
    assert min(pushed for pushed in load.acked.values() if pushed > at) - at < AT_WORK
    assert "the primary has moved" in pool.log()


def replicas_on_disk(sentinels: Sentinels) -> list[Process]:
    """The replicas, which now have on their disks whatever they have got."""
    replicas = [one for one in sentinels.servers if one is not sentinels.primary()]
    for one in replicas:
        one.say("CONFIG", "SET", "appendonly", "yes")
        one.say("CONFIG", "SET", "appendfsync", "always")
        one.say("CONFIG", "REWRITE")
    eventually(lambda: not any(one.say("INFO", "persistence")["aof_rewrite_in_progress"] for one in replicas))
    return replicas


def lose_the_lag(
    sentinels: Sentinels, replicas: list[Process], is_enough: Callable[[float], bool]
) -> tuple[float, float]:
    """Kill the primary some time after its replicas were stopped, and let these begin again with what they had.

    ``is_enough``: whether they have been stopped for long enough, since that moment. Returns when they were stopped and
    killed.
    """
    for one in replicas:
        one.stop()
    stopped = time.time()
    eventually(lambda: is_enough(stopped))
    for one in (sentinels.primary(), *replicas):  # killed: the kernel would still hand on what it has received
        one.kill()
    killed = time.time()
    for one in replicas:
        one.start()
    return stopped, killed


@pytest.mark.thorough("the replicas' lag is some ms where all is well")
def test_what_the_replicas_had_not_got_is_lost_and_nothing_else(sentinels, over):
    replicas = replicas_on_disk(sentinels)
    with loaded(over, workers=1) as (_, load):  # which is busy for some seconds: what was run would not be missed
        stopped, killed = lose_the_lag(sentinels, replicas, lambda stopped: load.since(stopped) > 20)
        at, _ = eventually(sentinels.switches)[0]
        eventually(lambda: resumes(over, load, at))

    ledger = Ledger.of(load)
    assert 10 < len(ledger.lost)
    # Two sentinels may promote two replicas, one after the other.
    assert ledger.is_bounded(stopped, max(killed, sentinels.all_heard() + 1))


def after_lost_reserves(site: Site, sentinels: Sentinels, config: str) -> tuple[Ledger, Load, float]:
    """What became of the jobs of two pools, and when the primary was replaced, some eight seconds later.

    Long jobs are due while the replicas are stopped: that these have begun is lost with the old primary. One of them
    ends while there is none.
    """
    with (
        site.pool("--runtime-dir", str(site.path / "other"), config=config),
        loaded(site, config=config) as (_, load),
    ):
        replicas = replicas_on_disk(sentinels)
        for seconds in (1, 13, 14):
            site.push("sleep", seconds=seconds, tag=f"long{seconds}", delay=0.2)
        lose_the_lag(sentinels, replicas, lambda stopped: time.time() > stopped + 0.5)
        at, _ = eventually(sentinels.switches)[0]
        eventually(lambda: resumes(site, load, at))
    ledger = Ledger.of(load)
    print(f"lost {len(ledger.lost)}, run again {len(ledger.twice)}, overlaps {ledger.overlaps}, unsure {load.unsure}")
    return ledger, load, at


@pytest.mark.thorough("stores/test_awaited_replicas.py has what is acknowledged, the test above the switch")
@pytest.mark.fault("F47")
def test_nothing_that_was_acknowledged_is_lost_where_all_replicas_must_have_it(sentinels, over):
    settings = replace(over.connection, wait_replicas="all")
    with closing(Queue(settings)) as queue:
        site = Site(settings, over.path, queue)
        ledger, load, at = after_lost_reserves(site, sentinels, f"{LEASES}wait_replicas = all\n")

    assert ledger.lost == []
    assert ledger.overlaps == []
    assert ledger.long == {"long1": 1, "long13": 1, "long14": 1}
    assert ledger.work_after(at) < AT_WORK
    assert load.unsure > 0


@pytest.mark.thorough("the scripts are tested by themselves")
def test_jobs_whose_reserve_was_lost_go_on_where_they_run(sentinels, over):
    ledger, load, at = after_lost_reserves(over, sentinels, LEASES)

    assert ledger.overlaps == []
    assert ledger.long == {"long1": 1, "long13": 1, "long14": 1}
    assert load.unsure > 0
    assert ledger.work_after(at) < AT_WORK


@pytest.mark.thorough("ten seconds, and the kill is the usual case")
@pytest.mark.parametrize("wait_replicas", ["", "all"])
def test_a_forced_failover_is_followed_although_both_call_themselves_the_primary(sentinels, over, wait_replicas):
    """A job whose reserve the old one has confirmed last may begin again beside itself, for a moment."""
    settings = replace(over.connection, wait_replicas=wait_replicas)
    config = LEASES + (f"wait_replicas = {wait_replicas}\n" if wait_replicas else "")
    with closing(Queue(settings)) as queue, ExitStack() as stack:
        site = Site(settings, over.path, queue)
        stack.enter_context(site.pool("--runtime-dir", str(site.path / "other"), config=config))
        _, load = stack.enter_context(loaded(site, config=config))
        old = sentinels.primary()
        for number in range(8):  # so that one begins in the second in which both are primaries
            site.push("beat", seconds=6.0, tag=f"long{number}", delay=0.25 * number)
        began = time.time()
        sentinels.fail_over()
        at, _ = eventually(sentinels.switches)[0]
        eventually(lambda: resumes(site, load, at))
        assert "master" == old.say("ROLE")[0] or time.time() - at > 9  # nobody was cut off by it

    ledger, ends, both = Ledger.of(load), until(sentinels, takes=1.5), [*overlapping(over)]
    print(f"at once {both}, unsure {load.unsure}")
    assert ledger.is_bounded(began, ends)
    if wait_replicas:
        assert [] == ledger.lost + both
    else:
        assert ledger.work_after(at) < AT_WORK
        assert all(began < one.began < ends and one.seconds < AT_ONCE for one in both)


@pytest.mark.thorough("as above")
@pytest.mark.parametrize("by", ["pause", "valkey"])
def test_a_planned_failover_loses_nothing_where_writes_are_held_meanwhile(tmp_path, by):
    """By hand; or by Valkey's sentinel, which does that itself."""
    valkey = {"binary": valkey_binary()} if by == "valkey" else {}
    with running(tmp_path, **valkey) as sentinels, closing(Queue(ConnectionSettings(url=sentinels.url))) as queue:
        site = Site(ConnectionSettings(url=sentinels.url), tmp_path, queue)
        for one in sentinels.sentinels:  # Valkey's would take the new primary for dead, and promote others in haste
            one.say("SENTINEL", "SET", NAME, "down-after-milliseconds", 10_000)
        with loaded(site) as (_, load):
            if by == "pause":
                sentinels.primary().say("CLIENT", "PAUSE", 12_000, "WRITE")
            sentinels.fail_over(*(["COORDINATED"] if valkey else []))
            at, _ = eventually(sentinels.switches)[0]
            eventually(lambda: resumes(site, load, at))

    ledger = Ledger.of(load)
    print(f"unsure {load.unsure}, run again {len(ledger.twice)}")
    assert [] == ledger.lost
    assert [] == ledger.twice
    assert 1 == ledger.slow


@pytest.mark.thorough("as above")
@pytest.mark.parametrize("flags", [(), ("--concurrency", "20")], ids=["one job at a time", "side by side"])
def test_a_primary_that_hangs_is_left_and_its_late_answers_are_not_believed(sentinels, over, flags):
    with loaded(over, *flags) as (_, load):
        old = sentinels.primary()
        stopped = time.time()
        old.stop()
        at, _ = eventually(sentinels.switches)[0]
        eventually(lambda: resumes(over, load, at))
        old.go_on()
        eventually(lambda: old.say("ROLE")[0] == "slave")

    ledger = Ledger.of(load)
    assert ledger.is_bounded(stopped, until(sentinels))
    assert 1 <= ledger.slow <= len(sentinels.switches())
    assert ledger.work_after(at) < AT_WORK


@pytest.mark.thorough("as above")
def test_two_failovers_in_three_seconds(sentinels, over):
    with loaded(over) as (_, load):
        began = time.time()
        for count in (1, 2):
            sentinels.fail_over()
            eventually(lambda count=count: len(sentinels.switches()) >= count)
        at, _ = sentinels.switches()[-1]
        eventually(lambda: resumes(over, load, at))
        eventually(lambda: sentinels.switches()[-1][1] == sentinels.primary().port)

    ledger = Ledger.of(load)
    assert ledger.is_bounded(began, until(sentinels, takes=1.5))


@pytest.mark.thorough("as above")
def test_without_a_quorum_it_is_an_outage_which_ends_when_the_sentinels_are_back(sentinels, over):
    with loaded(over) as (pool, load):
        for one in sentinels.sentinels[1:]:
            one.kill()
        killed = time.time()
        sentinels.primary().kill()
        eventually(lambda: "store lost" in pool.log())
        back = time.time()
        for one in sentinels.sentinels[1:]:
            one.start()
        at, _ = eventually(sentinels.switches)[0]
        eventually(lambda: resumes(over, load, at))

    ledger = Ledger.of(load)
    assert at > back
    assert few_lost_with_the_first_primary(ledger, sentinels.switches())
    assert all(killed - 0.1 < lost < until(sentinels) for lost in ledger.lost)


@pytest.mark.thorough("as above")
def test_a_dead_or_frozen_sentinel_delays_nothing(sentinels, over):
    with loaded(over) as (pool, load):
        sentinels.sentinels[0].stop()
        eventually(lambda: f"sentinel 127.0.0.1:{sentinels.sentinels[0].port}:" in pool.log())
        primary = next(one for one in sentinels.servers if one.say("ROLE")[0] == "master")
        primary.kill()
        at, _ = eventually(sentinels.switches)[0]
        eventually(lambda: resumes(over, load, at))

    assert Ledger.of(load).work_after(at) < AT_WORK


@pytest.mark.thorough("as above")
def test_an_old_primary_that_comes_back_is_left_alone(sentinels, over):
    with loaded(over) as (_, load):
        old = sentinels.primary()
        old.kill()
        at, _ = eventually(sentinels.switches)[0]
        eventually(lambda: resumes(over, load, at))
        old.start()  # as a primary, for some seconds, and without any job
        eventually(lambda: old.say("ROLE")[0] == "slave")
        since = time.time()
        eventually(lambda: resumes(over, load, since))

    assert old is not sentinels.primary() or len(sentinels.switches()) > 1
    assert len(Ledger.of(load).lost) < 20 * len(sentinels.switches())


@pytest.mark.thorough("the first test follows a failover; verbs ask the sentinels as a pool does")
def test_commands_and_a_lone_worker_find_the_primary_too(sentinels, over):
    over.push(tag="first")
    assert "1" in over.run("size", *over.where).stdout
    sentinels.primary().kill()
    eventually(sentinels.switches)
    over.push(tag="second")
    over.work()

    assert {"first", "second"} == {note["tag"] for note in over.trail(event="end")}


def test_check_says_what_the_sentinels_know_and_what_is_missing(sentinels, over):
    # On a crowded machine the sentinels lose sight of each other for moments.
    possible = "a failover is possible: quorum 2, OK 3 usable Sentinels"
    check = "check", *over.where
    said = eventually(lambda: said if possible in (said := over.run(*check, check=False).stdout) else "")
    port = sentinels.primary().port

    assert f"names 127.0.0.1:{port} as the primary of {NAME!r}" in said
    assert "replicas: 2" in said
    assert "min-replicas-to-write 0" in said


def test_check_says_which_password_is_wrong_and_which_name_is_not_known(tmp_path):
    with running(tmp_path, replicas=0, count=1, password="of-servers", login="of-sentinels") as found:
        urls = {
            "right": found.url,
            "sentinels": found.url_of("of-servers", "wrong"),
            "servers": found.url_of("wrong", "of-sentinels"),
            "name": found.url_of("of-servers", "of-sentinels", name="other"),
        }
        site = Site(ConnectionSettings(url=found.url), tmp_path, Queue(ConnectionSettings(url=found.url)))
        said = {key: site.run("check", "--url", url, check=False).stdout for key, url in urls.items()}
        refused = site.run(
            "start", "--url", urls["name"], "--runtime-dir", str(tmp_path / "run"), "--modules", "json", check=False
        )
        site.queue.close()

    assert "answers" in said["right"]
    assert "the url names 1 sentinel(s)" in said["right"]
    assert "refuses its password (sentinel_user, sentinel_password)" in said["sentinels"]
    assert "the server rejected the user or password" in said["servers"]
    assert "knows no primary named 'other'" in said["name"]
    assert (78, 1) == (refused.returncode, len(refused.stderr.splitlines()))
    assert not any("of-servers" in text or "of-sentinels" in text for text in said.values())
