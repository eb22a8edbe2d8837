"""Members of flows that the real Laravel's workers run, beside such that run here."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from queuepool import Call, Flow, chain, group, php, results
from queuepool.config.urls import database_of
from queuepool.jobs.client import Queue
from queuepool.jobs.composing import flow_of
from queuepool.jobs.following_flows import FlowId
from tests.cli.test_pages_and_examples import ROOT, Block, blocks
from tests.pool.test_flows import kill_one, names
from tests.support.eventually import eventually
from tests.support.flowapp import fails, merge, step
from tests.support.laravel_peer import Peer
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("both")

MEMBERS = str(ROOT / "tests" / "laravel" / "members.php")
APP = ("--modules", "tests.support.flowapp")
REPORTS = "default"


@pytest.fixture
def place(both: tuple[Site, Peer], monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site, _ = both
    monkeypatch.setenv("TRAIL", str(site.trail_file))
    site.run("migrate", *site.where, check=False)  # in Redis there is nothing to create
    with closing(Queue(replace(site.connection, flow_reports=REPORTS))) as queue:
        yield replace(site, queue=queue)


def ship(name: str, kind: str = "Shipment", tries: int = 3, **properties: object) -> Call[Any]:
    return php(f"App\\Jobs\\{kind}", {"name": name, **properties}, queue="php", options={"tries": tries})


def run_here(site: Site) -> None:
    site.work(*APP)


def run_there(peer: Peer) -> None:
    peer.run("work", queue="php", stop_when_empty=True, boot=MEMBERS, retry_after=1)


def run_by_turns(site: Site, peer: Peer, flow: FlowId) -> str:
    """Not side by side: on SQLite, Laravel's pop fails at a locked file. Returns as what the flow has ended."""

    def state_after_a_turn() -> str:
        run_there(peer)
        run_here(site)
        state = flow.flow()
        return state.state if state and state.is_over else ""

    return eventually(state_after_a_turn)


def test_a_chain_through_both_languages(place: Site, laravel: Peer) -> None:
    flow = flow_of(chain(ship("a"), step.call, ship("c"), step.call("d"))).push_to(place.queue)

    assert "done" == run_by_turns(place, laravel, flow)
    assert ["a", "A", "c", "d"] == names(place, "ends")
    assert (0, 0) == (place.queue.size("php"), place.queue.size(REPORTS))


def test_a_group_in_both_languages_with_a_callback_that_takes_what_they_return(place: Site, laravel: Peer) -> None:
    calls = [ship("a"), step.call("b"), ship("c", releases=1), step.call("d")]
    flow = flow_of(group(calls, then=merge.call)).push_to(place.queue)

    assert "done" == run_by_turns(place, laravel, flow)
    assert [["A", "B", "C", "D"]] == [line["names"] for line in place.trail(what="merges")]


def test_a_failure_in_php_stops_the_flow_and_a_retry_resumes_it(place: Site, laravel: Peer, tmp_path) -> None:
    gate = tmp_path / "gate"
    flow = Flow("fails")
    bad = flow.add(ship("bad", tries=2, fails=str(gate)))
    flow.add(step.call("never"), after=bad)
    flow.add(ship("alarm"), after=bad, on="failure")
    found = flow.push_to(place.queue)

    assert "failed" == run_by_turns(place, laravel, found)
    assert (["bad", "bad", "alarm"], ["alarm"], ["bad"]) == (
        names(place, "begins"), names(place, "ends"), names(place, "failed")
    )  # fmt: skip
    assert "1 of 3 done, 1 failed, 1 cancelled" == found.flow().progress
    if not place.connection.url.startswith("unix"):  # on Redis, Laravel's failed jobs are elsewhere
        gate.touch()
        assert "1 job put back" in place.run("flow", "retry", str(found), *place.where).stdout
        assert "done" == run_by_turns(place, laravel, found)
        assert ["alarm", "bad", "never"] == names(place, "ends")


@pytest.mark.by_turns("kind")
@pytest.mark.parametrize("kind", ["DiesUnreported", "DiesReported"])
def test_a_worker_that_is_killed_around_the_report_costs_and_doubles_nothing(
    place: Site, laravel: Peer, kind: str
) -> None:
    flow = flow_of(chain(ship("a", kind), step.call("b"))).push_to(place.queue)

    run_there(laravel)
    assert (1, 1 if kind == "DiesReported" else 0) == (place.queue.size("php"), place.queue.size(REPORTS))
    assert "done" == run_by_turns(place, laravel, flow)
    eventually(lambda: run_there(laravel) or place.queue.size("php") == 0)
    run_here(place)
    assert ["a", "a", "b"] == sorted(names(place, "ends"))
    assert 0 == place.queue.size(REPORTS)


def test_a_member_that_cannot_begin_in_php_still_ends(place: Site, laravel: Peer) -> None:
    flow = Flow("odd", stop="nothing")
    gone = flow.add(ship("model gone", "NeedsModel"))
    flow.add(step.call("after a missing model"), after=gone)
    flow.add(step.call("after an unknown class"), after=flow.add(ship("x", "Unheard", tries=1)), on="failure")
    flow.add(step.call("after what no JSON holds"), after=flow.add(ship("y", "Odd", tries=1)))
    flow.add(merge.call(results([flow.add(ship("z", "Odd", tries=1))])))
    found = flow.push_to(place.queue)

    assert "failed" == run_by_turns(place, laravel, found)
    assert {"after a missing model", "after an unknown class", "after what no JSON holds"} == {*names(place, "ends")}
    assert "5 of 8 done, 2 failed, 1 cancelled" == found.flow().progress


def test_a_result_that_is_too_large_fails_its_job_where_it_ran(place: Site, laravel: Peer) -> None:
    large, small = (
        flow_of(group([ship(name, "Large", releases=fits)], then=merge.call)) for fits, name in enumerate("ab")
    )
    [found, other] = [flow.push_to(place.queue) for flow in (large, small)]

    assert "failed" == run_by_turns(place, laravel, found)
    assert "done" == run_by_turns(place, laravel, other)
    assert (["a", "b"], ["a"]) == (names(place, "ends"), names(place, "failed"))
    if not place.connection.url.startswith("unix"):  # on Redis, Laravel's failed jobs are elsewhere
        [failed] = place.queue.stores.failed.page()
        assert "Its result has 65540 bytes of JSON, at most 65536 are kept" in failed.exception


def test_a_refused_report_of_a_failure_leaves_the_rest_of_it_as_it_is(place: Site, laravel: Peer, tmp_path) -> None:
    if "sqlite" not in place.connection.url:
        pytest.skip("a trigger of SQLite refuses the push")
    flow = flow_of(chain(ship("bad", tries=1, fails=str(tmp_path / "gate")), step.call("b"))).push_to(place.queue)
    refuses = f"WHEN NEW.queue = '{REPORTS}' BEGIN SELECT RAISE(ABORT, 'refused'); END"
    with closing(sqlite3.connect(database_of(place.connection.url))) as database:
        database.execute(f"CREATE TRIGGER no_reports BEFORE INSERT ON jobs {refuses}")
    run_there(laravel)

    assert (["bad"], 0) == (names(place, "failed"), place.queue.size("php"))
    assert "0 of 2 done" == flow.flow().progress


@pytest.mark.thorough("a failure there does in a test above; what follows one, in the contract of flows")
def test_a_failure_here_stops_what_is_in_php(place: Site, laravel: Peer) -> None:
    flow = flow_of(chain(fails.call(), ship("never"))).push_to(place.queue)

    assert "failed" == run_by_turns(place, laravel, flow)
    assert [] == names(place, "begins")


@dataclass
class Workers:
    """Workers of Laravel, of which any may be killed: another takes its place."""

    laravel: Peer
    stack: ExitStack
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self) -> None:
        flags = {"queue": "php", "boot": MEMBERS, "retry_after": 2, "sleep": 0.05}
        self.running.append(self.stack.enter_context(self.laravel.staying("work", **flags)))

    def kill_one(self, chance: random.Random) -> None:
        victim = self.running.pop(chance.randrange(len(self.running)))
        victim.kill()
        victim.wait()
        self.start()


def test_a_flow_ends_while_workers_of_both_languages_are_killed(place: Site, laravel: Peer) -> None:
    if "sqlite" in place.connection.url:
        pytest.skip("Laravel's pop fails at a file that others write to")
    chance, flow = random.Random(7), Flow("killed")
    rows = []
    for row in range(10):
        last = flow.add(ship(f"{row}.0", tries=0, seconds=0.05))
        for number in (1, 2, 3):
            call = step.call(f"{row}.{number}", 0.05) if number % 2 else ship(f"{row}.{number}", tries=0, seconds=0.05)
            last = flow.add(call, after=last)
        rows.append(last)
    flow.add(merge.call(results(rows)))
    found = flow.push_to(place.queue)
    with ExitStack() as stack, place.pool("--workers", "2", "--max-crashes", "0", *APP) as pool:
        workers = Workers(laravel, stack)
        workers.start()
        workers.start()
        for ended in range(1, 40, 3):
            eventually(lambda ended=ended: len({*names(place, "ends")}) >= ended)
            kill_one(pool, chance) if ended % 2 else workers.kill_one(chance)
        assert "done" == found.wait(60).state

    assert_in_order(place.trail())
    merged = place.trail(what="merges")
    assert 1 == len({line["job"] for line in merged})
    assert [[f"{row}.3".upper() for row in range(10)]] * len(merged) == [line["names"] for line in merged]


def assert_in_order(trail: list[dict[str, Any]]) -> None:
    """Each member began after the one before it in its row had ended, and was pushed once."""
    jobs, ended = dict[str, set[str]](), set[str]()
    for line in trail:
        if line["what"] == "merges":
            assert 40 == len(ended)
            continue
        row, _, number = line["name"].partition(".")
        jobs.setdefault(line["name"], set()).add(line["job"])
        if line["what"] == "ends":
            ended.add(line["name"])
        elif number != "0":
            assert f"{row}.{int(number) - 1}" in ended
    assert {1} == {len(ids) for ids in jobs.values()}
    assert 40 == len(jobs)


def test_reports_are_signed_by_the_hook_of_the_page_about_signing(place: Site, laravel: Peer) -> None:
    [hook] = blocks(ROOT / "docs" / "signing.md", "php")
    boot, name, secret = place.path / "boot.php", "k1", "0123456789abcdef"
    boot.write_text(f"{hook.code}\nsign_payloads('{name}', '{secret}');\nrequire '{MEMBERS}';\n")
    (place.path / "pool.ini").write_text(f"[connection]\nsigning = require\nsigning_keys = {name}:{secret}\n")
    (place.path / "pool.ini").chmod(0o600)
    signing = replace(place.queue.settings, signing="require", signing_keys=((name, secret),))
    with closing(Queue(signing)) as queue:
        flow = flow_of(chain(ship("a"), step.call)).push_to(queue)
        laravel.run("work", queue="php", stop_when_empty=True, boot=str(boot))
        place.work("-c", str(place.path / "pool.ini"), *APP)

        assert ("done", ["a", "A"]) == (flow.flow().state, names(place, "ends"))


# The page about flows


def blocks_of_page(language: str) -> list[Block]:
    text = (ROOT / "docs" / "flows.md").read_text()
    section = text[text.index("## Jobs in PHP") : text.index("## What is promised")]
    return [block for block in blocks(ROOT / "docs" / "flows.md", language) if block.code.splitlines()[0] in section]


@pytest.mark.thorough("test_a_group_in_both_languages_with_a_callback_that_takes_what_they_return")
def test_the_flow_of_the_page(place: Site, laravel: Peer) -> None:
    [php_class], [module, program] = blocks_of_page("php"), blocks_of_page("python")
    (place.path / "app").mkdir()
    (place.path / "app" / "orders.py").write_text(module.code)
    (place.path / "program.py").write_text(program.code)
    (place.path / "classes.php").write_text(
        "<?php\nnamespace App\\Jobs;\nuse Illuminate\\Bus\\Queueable;\nuse Illuminate\\Contracts\\Queue\\ShouldQueue;\n"
        f"use Illuminate\\Queue\\InteractsWithQueue;\nrequire '{MEMBERS}';\n{php_class.code}"
    )
    settings = f"[connection]\nurl = {place.connection.url}\nflow_reports = python\n"
    settings += f"prefix = {place.connection.prefix}\n" if place.connection.prefix else ""
    (place.path / "pool.ini").write_text(settings)
    environment = {**place.env(), "QUEUEPOOL_CONFIG": str(place.path / "pool.ini")}
    subprocess.run([sys.executable, "program.py"], cwd=place.path, env=environment, check=True)

    here = ("-c", str(place.path / "pool.ini"), "--queue", "python", "--modules", "app.orders")
    place.work(*here)
    laravel.run("work", queue="default", stop_when_empty=True, boot=str(place.path / "classes.php"))
    assert "order 7 is on its way: parcel 7" in place.work(*here).stderr
    [flow] = place.queue.stores.flows.page()
    assert "done" == flow.state
