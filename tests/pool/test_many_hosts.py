"""Pools on several hosts as one: who they are, what they are told over their store, and what is said of the lost."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from redis import Redis

from queuepool.stores.commands import CommandOutcome, CommandPost, NoCommand, RemoteCommand
from tests.pool.test_containers import CONTAINER, master_of, needs_unshare
from tests.support.asked_again import asked_again
from tests.support.drivers import DATABASES, site_on
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.pools import Site, is_gone
from tests.support.terminal import CTRL_C, terminal

HOST = socket.gethostname()
#: the worker of a pool that is in the notices of tests
WORKER = {"role": "worker", "number": 1, "state": "idle"}
#: each container has a directory of its own under the same path
OWN_DIRECTORY = ["sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"']


@contextmanager
def twin(site: Site, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A pool in a container on its host's network: process 1, with the host's name and the path of every other."""
    run = site.path / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    start = [sys.executable, "-m", "queuepool", "start", *site.flags("--workers", "1"), "--runtime-dir", str(run)]
    with (site.path / f"log.{name}").open("ab") as log:
        outer = subprocess.Popen(
            [*CONTAINER, *OWN_DIRECTORY, str(run), *start], env=site.env(), stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        yield outer
    finally:
        kill(outer)


def kill(outer: subprocess.Popen[bytes]) -> None:
    inside = master_of(outer)
    outer.kill()
    outer.wait()
    eventually(lambda: all(map(is_gone, inside)))


def shown(site: Site) -> list[dict[str, Any]]:
    found = json.loads(site.run("status", "--all", "--json", *site.where, check=False).stdout)
    return [pool for pool in found if pool["state"] != "left"]


def running(site: Site, count: int) -> list[dict[str, Any]]:
    """So many pools, all at work."""

    def are_there() -> list[dict[str, Any]]:
        found = shown(site)
        return found if [True] * count == [pool["takes_jobs"] for pool in found] else []

    return eventually(are_there)


def told(site: Site, *words: str, code: int = 0) -> list[str]:
    """The lines of a verb, of both streams."""
    done = site.run(*words, *site.where, check=False)
    assert code == done.returncode, done.stderr
    return sorted((done.stdout + done.stderr).splitlines())


@needs_unshare
def test_two_containers_of_one_name_place_and_pid_are_two_pools_each_of_which_gets_a_command_once(site):
    with twin(site, "one") as one, twin(site, "two"):
        pools = running(site, 2)
        ids = sorted(pool["id"] for pool in pools)
        assert [(HOST, 1, "default")] * 2 == [(pool["host"], pool["master"], pool["pool"]) for pool in pools]
        assert [f"{HOST}/default#{id_}: paused: its workers start no more jobs" for id_ in ids] == told(
            site, "pause", "--on", HOST
        )
        assert [f"{HOST}/default#{ids[0]}: continues"] == told(site, "continue", "--on", f"{HOST}/default#{ids[0]}")
        expected = dict(zip(ids, ("running", "paused"), strict=True))
        eventually(lambda: expected == {pool["id"]: pool["state"] for pool in shown(site)})
        told(site, "continue", "--everywhere")

        kill(one)
        answers = told(site, "scale", "2", "--everywhere", code=1)
        assert 2 == len(answers)
        assert 1 == sum(": has 2 workers" in line for line in answers)
        assert 1 == sum(": not reached: it has looked for no command" in line for line in answers)
    verbs = [(line["verb"], line["subject"]) for line in json.loads(site.run("journal", "--json", *site.where).stdout)]
    assert [
        (verb, f"pool default on {HOST}") for verb in ("pause", "pause", "continue", "continue", "continue", "scale 2")
    ] == verbs


@needs_unshare
@pytest.mark.thorough("it takes half a minute; test_alerts.py has a lost pool, the test above two of one name")
def test_of_two_containers_of_one_name_the_killed_one_is_lost_and_that_is_told_once(site):
    job = site.push("until", gate=str(site.path / "gate"))
    with ExitStack() as stack:
        pools = {name: stack.enter_context(twin(site, name)) for name in ("one", "two", "three")}
        running(site, 3)
        eventually(lambda: is_nobodys_predecessor(shown(site)))
        eventually(lambda: [pool for pool in shown(site) if pool["busy"]])
        [victim] = [pool["id"] for pool in shown(site) if pool["busy"]]
        [name] = [name for name in pools if _runs(pools[name])]
        kill(pools[name])
        logs = [site.path / f"log.{other}" for other in pools if other != name]
        eventually(lambda: any("pool lost" in log.read_text() for log in logs), within=150)
        done = site.run("status", "--all", *site.where, check=False)
        (site.path / "gate").touch()

        lines = [line for log in logs for line in log.read_text().splitlines() if "pool lost" in line]
        assert 1 == len(lines)
        assert f"id={victim}" in lines[0]
        assert job in lines[0]
        assert 5 == done.returncode
        assert f"pool default on {HOST}#{victim}: lost" in done.stdout


def is_nobodys_predecessor(pools: list[dict[str, Any]]) -> bool:
    """Whether each has published since the last of them began: one that has not is taken for a former pool there."""
    last = max(datetime.fromisoformat(pool["since"]) for pool in pools) + timedelta(seconds=1)  # it is cut to seconds
    return all(pool["at"] > last.timestamp() for pool in pools)


def _runs(outer: subprocess.Popen[bytes]) -> bool:
    """Whether a worker of this container is busy."""
    found = subprocess.run(["ps", "-o", "args", "--ppid", *map(str, master_of(outer))], capture_output=True, text=True)
    return " busy " in found.stdout


@pytest.fixture(params=["redis", *DATABASES])
def anywhere(request) -> Iterator[Site]:
    with site_on(request.param, request) as found:
        yield found


@pytest.mark.every_store("anywhere")
def test_a_pool_is_told_over_any_store_and_what_was_done_is_in_log_and_journal(anywhere):
    site = anywhere
    target = f"{HOST}/default"
    with site.pool("--workers", "1", "--remote", "all") as pool:
        running(site, 1)
        assert [f"{target}: has 2 workers"] == told(site, "scale", "2", "--on", target)
        replaced = [
            f"{target}: 2 of 2 workers run the new code",
            f"{target}: its workers are being replaced, each after its job",
        ]
        assert replaced == told(site, "restart", "--everywhere", "--wait")
        eventually(lambda: re.search("an operator has acted .*verb=restart", pool.log()))
        assert [f"{target}: stopped", f"{target}: stopping, its running jobs may finish"] == told(
            site, "drain", "--on", HOST
        )
        assert 0 == pool.wait()
    rows = json.loads(site.run("journal", "--json", *site.where).stdout)
    done = site.run("status", "--all", *site.where, check=False)

    assert ["scale 2", "restart", "drain"] == [row["verb"] for row in rows]
    assert "pool lost" not in pool.log()
    assert 3 == done.returncode
    assert re.search(rf"^pool default on {HOST}: left \d+ s ago done=0 failed=0$", done.stdout, re.MULTILINE)


def test_a_job_is_cancelled_by_the_pool_that_runs_it(site):
    target = f"{HOST}/default"
    job_id = site.push("until", gate=str(site.path / "gate"))
    with site.pool("--workers", "1"):
        eventually(lambda: site.trail(event="start"))
        running(site, 1)
        assert [f"{target}: not here: it runs no job with this id"] == told(site, "cancel", "x", "--on", HOST, code=1)
        assert [f"{target}: job cancelled"] == told(site, "cancel", job_id, "--on", target)
        eventually(
            lambda: [job_id] == [row["id"] for row in json.loads(site.run("failed", "--json", *site.where).stdout)]
        )
        assert [f"{target}: not here: it runs no job with this id"] == told(
            site, "cancel", job_id, "--on", HOST, code=1
        )
    [line] = json.loads(site.run("journal", "--json", *site.where).stdout)

    assert ("cancel", f"job {job_id} of pool default on {HOST}") == (line["verb"], line["subject"])


@each(
    ("outcomes", "code"),
    [
        ((CommandOutcome.DONE, CommandOutcome.NOT_HERE), 0),
        ((CommandOutcome.NOT_HERE, CommandOutcome.NOT_HERE), 1),
        ((CommandOutcome.DONE, CommandOutcome.REFUSED), 1),
    ],
)
def test_a_job_that_one_pool_runs_need_not_be_on_the_others(site, server, outcomes, code):
    hosts, commands = ("web8", "web9"), site.queue.stores.commands
    for host in hosts:
        publish(site, server, host)
    with ThreadPoolExecutor(1) as operator:
        said = operator.submit(told, site, "cancel", "x", "--everywhere", code=code)
        for host, outcome in zip(hosts, outcomes, strict=True):
            [command] = eventually(partial(taken, commands, host))
            commands.answer(command, outcome, "so")

    words = {CommandOutcome.DONE: "so"}
    assert [
        f"{host}/p: {words.get(outcome, f'{outcome.value}: so')}" for host, outcome in zip(hosts, outcomes, strict=True)
    ] == said.result()


def publish(site: Site, server: Redis, host: str, **facts: object) -> None:
    """What a pool ``p`` of another host, whose id is the host's name, publishes now."""
    (seconds, micros), running = server.time(), {"state": "running", "workers": 1, "processes": [WORKER]}
    at = seconds - 1 + micros / 1e6  # one that is later than the store's whole second would count as of then
    notice = {"host": host, "pool": "p", "id": host, "at": at, **running, **facts}
    server.hset(f"{site.connection.prefix}queuepool:pools", f"{host}:p:{host}", json.dumps(notice))


def taken(commands: CommandPost, instance: str) -> list[RemoteCommand | NoCommand]:
    return list(commands.take(instance))


@each(
    ("facts", "wait", "code", "said"),
    [
        ({"processes": [WORKER | {"generation": 2}]}, 60, 0, "1 of 1 workers run the new code"),
        ({"processes": [], "boot_problem": "no app"}, 60, 1, "the new code does not become ready: no app"),
        ({}, 0.1, 1, "timed out, it has published nothing since"),
    ],
)  # fmt: skip
def test_a_restart_elsewhere_is_waited_for_until_the_new_code_works_or_will_not(site, server, facts, wait, code, said):
    def is_over() -> bool:
        """What the command sees first does not count, as that may be older than the restart."""
        publish(site, server, "web9", generation=2, **facts)
        return lines.done()

    commands = site.queue.stores.commands
    publish(site, server, "web9")
    with ThreadPoolExecutor(1) as operator:
        lines = operator.submit(told, site, "reload", "--on", "web9", "--wait", str(wait), code=code)
        [command] = eventually(partial(taken, commands, "web9"))
        commands.answer(command, CommandOutcome.DONE, "so")
        if facts:
            eventually(is_over)

    assert sorted(["web9/p: so", f"web9/p: {said}"]) == lines.result()


def test_where_a_job_is_in_its_code_is_asked_of_the_pool_that_runs_it(site):
    target = f"{HOST}/default"
    job_id = site.push("until", gate=str(site.path / "gate"))
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="start"))
        running(site, 1)
        [pid] = pool.workers()
        nothing = [f"{target}: not here: nothing runs under this id, pid or pool"]
        assert nothing == told(site, "stack", "nonesuch", "--everywhere", code=1)
        for subject in (job_id, str(pid), "default"):
            *frames, head = told(site, "stack", subject, "--on", target)
            about = f"worker 1 of pool default (pid {pid}): job do {job_id}, attempt 1, since "
            assert head.startswith(f"{target}: {about}")
            assert any(re.fullmatch(r'  File ".*/gates\.py", line \d+, in until_told', frame) for frame in frames)
        (site.path / "gate").touch()

    assert "" == site.run("journal", *site.where).stdout


def test_what_a_pool_does_not_allow_is_refused_and_pools_that_are_not_there_are_named(site, server):
    target = f"{HOST}/default"
    with site.pool("--workers", "1") as pool:
        running(site, 1)
        assert [f"{target}: refused: its remote = safe does not allow stop"] == told(site, "stop", "--on", HOST, code=1)
        eventually(lambda: "command refused verb=stop by=" in pool.log())
        missing = told(site, "pause", "--on", "web9", "--on", HOST, code=3)
        assert [f"no pool web9 has published a notice; there are: {target}"] == missing
        [notice] = shown(site)
        assert notice["state"] == "running"
        key, now = f"{site.connection.prefix}queuepool:pools", server.time()[0]
        for host, ago, facts in (("lost", 100, {"id": "aa"}), ("old", 0, {})):
            server.hset(key, f"{host}:p:1", json.dumps({"host": host, "pool": "p", "at": now - ago, **facts}))

        answers = told(site, "continue", "--everywhere", code=1)
    assert {
        f"{target}: continues",
        "lost/p: lost: it has published nothing for ",
        "pool p on old: its version takes no commands",
    } == {re.sub(r"\d+ s, so .*", "", line) for line in answers}


def test_where_the_connection_has_keys_a_command_must_be_signed(site, monkeypatch):
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_SIGNING_KEYS", "k1:0123456789abcdef")
    with site.pool("--workers", "1", config="[connection]\nsigning = accept\n") as pool:
        running(site, 1)
        refused = told(site, "pause", "--everywhere", code=1)
        signed = told(site, "scale", "2", "--everywhere", "-c", "pool.ini")
        assert [] == pool.pids(r"master \[default\] paused")

    assert [f"{HOST}/default: refused: it is not signed as it must be: unsigned"] == refused
    assert [f"{HOST}/default: has 2 workers"] == signed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pause", "--on", ""), "must be HOST, HOST/POOL or HOST/POOL#ID"),
        (("pause", "--on", "a", "--everywhere"), "--everywhere means all pools: leave out --on"),
        (("pause", "default", "--everywhere"), "a queue is paused on all hosts"),
        (("continue", "default", "--on", "a"), "a queue is paused on all hosts"),
        (("scale", "few", "--everywhere"), "is not a whole number"),
        (("stack", "default", "--everywhere", "--json"), "--json does not go with --on or --everywhere"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(site, words, said):
    done = site.run(*words, *site.where, check=False)

    assert 2 == done.returncode
    assert said in done.stderr


# Who did what


def test_local_verbs_leave_their_lines_and_a_pause_says_by_whom(site):
    place = ("--runtime-dir", str(site.path / "run"), *site.where)
    with site.pool("--workers", "1"):
        for words in (("pause",), ("continue",), ("scale", "2"), ("reload",), ("pause",)):
            assert "" == site.run(*words, *place).stderr
        [pool] = eventually(
            lambda: (
                (found := json.loads(site.run("status", "--json", *place).stdout)) and found[0]["paused_by"] and found
            )
        )
        site.run("pause", "default", *site.where)
        site.run("stop", "--wait", "30", *place)
    rows = json.loads(site.run("journal", "--json", *site.where).stdout)
    of_pool, by = f"pool default on {HOST}", pool["paused_by"]

    verbs = ["pause", "continue", "scale 2", "reload", "pause"]
    assert [*((verb, of_pool) for verb in verbs), ("pause", "queue default"), ("stop", of_pool)] == [
        (row["verb"], row["subject"]) for row in rows
    ]
    assert {by} == {row["by"] for row in rows}
    assert by.endswith(f"@{HOST}")
    assert f"until queuepool continue (since {pool['paused_since']} by {by})" in pool["troubles"][0]["text"]


@pytest.mark.thorough("pauses by command and by signal each have a test; whose one is, a test above says")
def test_a_pause_that_signals_have_ended_and_begun_again_is_nobodys(site):
    place = ("--runtime-dir", str(site.path / "run"), *site.where)
    with site.pool("--workers", "1") as pool:
        site.run("pause", *place)
        eventually(lambda: pool.pids(r"master \[default\] paused"))
        site.run("continue", *place)
        eventually(lambda: pool.pids(r"master \[default\] running"))
        pool.signal(signal.SIGUSR2)
        eventually(lambda: pool.pids(r"master \[default\] paused"))
        [found] = json.loads(site.run("status", "--json", *place).stdout)

    assert ("paused", None) == (found["state"], found["paused_by"])


@pytest.mark.thorough("rare: a local verb at the moment at which its store is away")
def test_while_the_store_is_away_local_verbs_work_and_say_that_the_journal_has_no_line(away, own_server):
    place = ("--runtime-dir", str(away.path / "run"), *away.where)
    with away.pool("--workers", "1") as pool:
        own_server.kill()
        paused = away.run("pause", *place)
        eventually(lambda: pool.pids(r"master \[default\] paused"))
        own_server.start()

    assert "pool default: paused" in paused.stdout
    assert paused.stderr.startswith("note: the journal has no line of this: ")
    assert 1 == paused.stderr.count("\n")


def test_an_answer_counts_although_the_store_was_away_before_it_came(away, own_server):
    """What the pool was told stands, so its operator goes on looking."""
    notice = {"host": "web9", "pool": "p", "id": "aa", "at": int(own_server.say("TIME")[0])}
    own_server.say("HSET", f"{away.connection.prefix}queuepool:pools", "web9:p:aa", json.dumps(notice))
    commands = away.queue.stores.commands
    with ThreadPoolExecutor(1) as operator:
        said = operator.submit(told, away, "scale", "3", "--on", "web9")
        [command] = eventually(lambda: list(commands.take("aa")))
        # The last that sending it takes: before that, its operator cannot know whether it was told.
        eventually(lambda: "cmdstat_publish" in own_server.say("INFO", "commandstats"))
        own_server.kill()
        own_server.start()
        asked_again(lambda: commands.answer(command, CommandOutcome.DONE, "has 3 workers"))

    assert ["web9/p: has 3 workers"] == said.result()


@pytest.mark.thorough("a note; test_pool_without_configuration.py meets a pool of another store")
def test_a_verb_for_a_pool_of_another_store_leaves_no_line_in_its_own(site):
    with site.pool("--workers", "1") as pool:
        done = site.run("pause", "--runtime-dir", pool.runtime)  # the default store, a file that is not there

    assert "pool default has another store than this configuration" in done.stderr
    assert not (Path(site.path) / "queuepool.db").exists()


@pytest.mark.thorough("cli/test_real_starts.py finds the line of a clear, web/ those of pauses and a quarantine")
def test_verbs_that_change_what_the_store_holds_leave_their_lines(site):
    site.push()
    site.queue.push_raw(b"no job", queue="other")
    site.work("--queue", "other")
    for words in (
        ("clear", "default", "--force"), ("down",), ("up",), ("pause", "default"), ("continue", "default"),
        ("quarantine", "drop", "other", "--all"),
    ):  # fmt: skip
        site.run(*words, *site.where)
    rows = json.loads(site.run("journal", "--json", *site.where).stdout)
    last = site.run("journal", "--limit", "1", "--since", "1h", *site.where).stdout.splitlines()

    assert [
        ("clear", "queue default", 1), ("down", "connection default", None), ("up", "connection default", None),
        ("pause", "queue default", None), ("continue", "queue default", None),
        ("quarantine drop", "queue other", 1),
    ] == [(row["verb"], row["subject"], row["count"]) for row in rows]  # fmt: skip
    assert 2 == len(last)
    assert "quarantine drop" in last[1]
    assert "" == site.run("journal", "--since", "0s", *site.where).stdout


def test_status_is_shown_again_until_ctrl_c_and_exits_with_what_it_showed_last(site, server):
    """Also in a narrow terminal an id is whole: other commands take it."""
    key, job = f"{site.connection.prefix}queuepool:pools", {"name": "app.jobs.send_reminder", "id": str(UUID(int=1))}
    with terminal("status", "--all", "--watch", "0.1", *site.where, cwd=site.path) as screen:
        screen.shows("no pool has published a notice")
        notice = {"host": "web1", "pool": "p", "id": "aa", "at": server.time()[0] - 100}
        worker = {"role": "worker", "number": 1, "pid": 123456, "state": "busy", "job": job}
        server.hset(key, "web1:p:aa", json.dumps(notice | {"state": "running", "workers": 1, "processes": [worker]}))
        screen.shows("pool p on web1: lost", f"worker 1  busy   app.jobs.send_r~  {job['id']}  0.0 s")
        screen.press(CTRL_C)

        assert 5 == screen.ends()
    refused = site.run("status", "--watch", "--json", *site.where, check=False)
    assert (2, True) == (refused.returncode, "--json prints one document: leave out --watch" in refused.stderr)
