"""``jobs`` finds jobs by what is in them; ``retry``, ``forget``, ``drop`` and ``move`` do something with what fits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from queuepool.payload.envelope import decode
from tests.support import in_process
from tests.support.commands import Done
from tests.support.drivers import site_on
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.many_failed import failed_in_thousands
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("at")


@pytest.fixture(params=["redis", "sqlite", "postgres", "mariadb"])
def at(request: pytest.FixtureRequest):
    with site_on(request.param, request) as found:
        yield found


def ran(site: Site, verb: str, *words: str, check: bool = False) -> Done:
    return site.run(verb, *site.where, *words, check=check)


def found(site: Site, *words: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(ran(site, "jobs", "--json", *words, check=True).stdout)
    return rows


def ready(site: Site, queue: str = "default") -> list[str]:
    return [decode(raw, 0).id for raw in site.queue.stores.queue.first(queue, 10_000)]


def failed(site: Site) -> set[str]:
    return {record.id for record in site.queue.stores.failed.page()}


def test_jobs_are_found_by_their_arguments_in_all_queues_and_states(at):
    of_him = [at.push(queue=queue, order={"customer": 4711}) for queue in ("default", "other")]
    of_him.append(at.push(delay=600, order={"customer": 4711}))
    at.push(order={"customer": 47110})
    php = at.queue.push_object("App\\Jobs\\Charge", {"order": {"customer": 4711}}, queue="php")
    at.queue.push_raw(b"no job at 4711", queue="other")
    [record] = failed_in_thousands(at.queue, 1, order={"customer": 4711})
    rows = found(at, "--where", "order.customer=4711")
    every = found(at, "--where", "order.customer=4711", "--state", "ready,delayed,reserved,running,failed")

    assert {*of_him, php} == {row["id"] for row in rows}
    assert {record} == {row["id"] for row in every} - {row["id"] for row in rows}
    assert [4711] * 5 == [row["arguments"]["order"]["customer"] for row in every]
    assert {"delayed"} == {row["state"] for row in rows if row["due"]}
    assert [php] == [row["id"] for row in found(at, "--name", "App*")]
    assert [of_him[1]] == [row["id"] for row in found(at, "other", "--where", "order.customer=4711")]
    assert 1 == len(found(at, "--limit", "1"))
    assert [of_him[2]] == [row["id"] for row in found(at, "--state", "delayed")]
    assert "these are the first 1: " in ran(at, "jobs", "--limit", "1").stderr
    text = ran(at, "jobs", "php").stdout
    assert php in text
    assert "4711" in text


def test_jobs_are_counted_by_name_queue_state_error_or_argument(at):
    for customer in (1, 1, 2):
        at.push(customer=customer)
    at.push(queue="other", delay=60)
    failed_in_thousands(at.queue, 30)

    def counts(verb: str, by: str, *words: str) -> dict[str, int]:
        rows = json.loads(ran(at, verb, "--by", by, "--json", *words).stdout)
        return {row["value"]: row["jobs"] for row in rows}

    assert {"1": 2, "2": 1, "-": 1} == counts("jobs", "customer")
    assert {"default": 3, "other": 1} == counts("jobs", "queue")
    assert {"ready": 3, "delayed": 1} == counts("jobs", "state")
    assert {"KeyError: 'customer'": 15, "ValueError: order … is wrong": 15} == counts("failed", "error")
    assert "4\n" == ran(at, "jobs", "--count").stdout
    assert 15 == json.loads(ran(at, "failed", "--count", "--error", "KeyError", "--json").stdout)["jobs"]


def test_only_the_failures_that_fit_are_retried_or_dropped(at):
    ids = failed_in_thousands(at.queue, 1200)
    asked = ran(at, "retry", "--error", "KeyError")
    done = ran(at, "retry", "--error", "KeyError", "--yes")
    dropped = ran(at, "forget", "--where", "number=10*", "--yes")

    assert (2, 1200 - 600 - len([n for n in range(0, 1200, 2) if str(n).startswith("10")])) == (
        asked.returncode, len(failed(at))
    )  # fmt: skip
    assert "this would put back 600 failed jobs on connection default" in asked.stderr
    assert "600 jobs put back on connection default: default 600\n" == done.stdout
    assert {*ids[1::2]} == {*ready(at)}
    assert dropped.stdout.startswith("56 jobs dropped on connection default")


def test_a_failed_job_is_retried_on_another_queue(at):
    [job] = failed_in_thousands(at.queue, 1)

    assert "1 job put back on connection default: default 1\n" == ran(at, "retry", "all", "--to", "other").stdout
    assert ([], [job]) == (ready(at), ready(at, "other"))


def test_waiting_jobs_that_fit_are_dropped_with_their_locks(at):
    kept = at.push(customer=1)
    for queue, delay in (("default", 0), ("other", 60)):
        at.push(queue=queue, delay=delay, customer=2)
    at.queue.push("do", {"customer": 2}, unique_id="2")
    asked = ran(at, "drop", "--where", "customer=2")
    done = ran(at, "drop", "--where", "customer=2", "--yes")

    assert (2, True) == (
        asked.returncode,
        "would drop 3 jobs on connection default: default 2, other 1" in asked.stderr,
    )
    assert "3 jobs dropped on connection default: default 2, other 1\n" == done.stdout
    assert [kept] == ready(at)
    assert at.queue.push("do", {"customer": 2}, unique_id="2")


def test_a_queue_is_moved_to_another(at):
    stays = at.push(customer=1)
    moved = [at.push(customer=2, number=number) for number in range(700)]
    later = at.push(delay=600, customer=2)
    [failure] = failed_in_thousands(at.queue, 1, customer=2)
    done = ran(at, "move", "default", "other", "--where", "customer=2", "--yes")

    assert "701 jobs moved from default to other: default 701\n" == done.stdout
    assert ([stays], moved) == (ready(at), ready(at, "other"))
    assert [later] == [row["id"] for row in found(at, "other", "--state", "delayed")]
    assert {failure} == failed(at)
    assert 0 == ran(at, "move", "default", "other", "--state", "failed", "--yes").returncode
    assert failure in ready(at, "other")


def test_who_runs_a_job_is_told(at):
    gate = at.path / "gate"
    place = ("--runtime-dir", str(at.path / "run"))
    with at.pool("--workers", "1") as pool:
        job = at.push("until", gate=str(gate))
        [row] = eventually(lambda: found(at, *place, "--state", "running"))
        again, waiting = found(at, *place, "--where", "mode=until"), found(at, *place, "--state", "ready")
        workers = pool.workers()
        gate.touch()

    assert (job, "running", "default") == tuple(row[key] for key in ("id", "state", "pool"))
    assert workers == [row["pid"]]
    assert ([job], []) == ([one["id"] for one in again], waiting)


@pytest.fixture
def file(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(site.path)
    (site.path / "pool.ini").write_text(
        "[pool:web]\nconnection = near\nqueue = default\n[pool:far]\nconnection = far\nqueue = distant\n"
        f"[connection:near]\nurl = {site.connection.url}\nprefix = {site.connection.prefix}\n"
        f"[connection:far]\nurl = sqlite:///{site.path}/far.db\n"
    )
    site.run("migrate", "-c", "pool.ini")
    return ["-c", "pool.ini"]


@each(
    ("words", "code", "line"),
    [
        (["jobs", "--where", "customer"], 2, "has no =: write PATH=VALUE"),
        (["jobs", "--where", "a..b=1"], 2, "is not a path to an argument"),
        (["jobs", "--by", "a..b"], 2, "is not a path to an argument"),
        (
            ["jobs", "--state", "over"],
            2,
            "'over' is not one of ready, delayed, reserved, running, parked, failed, done",
        ),
        (["jobs", "--since", "yesterday"], 2, "is not a time"),
        (["jobs", "--limit", "-1"], 2, "not a whole number"),
        (["jobs", "--search", "x" * 201], 2, "is longer than 200 characters"),
        (["jobs", "nope"], 1, "no pool of pool.ini serves queue nope, and it holds no such jobs"),
        (["failed", "--since", "2026-13-01"], 2, "is not a time"),
        (["retry", "some-id", "--name", "x"], 2, "name failed jobs by ID, or give all"),
        (["forget"], 2, "name failed jobs by ID, or give --queue or filters"),
        (["drop"], 2, "name queues, or give filters"),
        (["drop", "default", "--state", "reserved"], 2, "is not one of ready, delayed"),
        (["move", "default", "default", "--yes"], 2, "are the same queue"),
        (["move", "default", "distant", "--yes"], 2, "queue distant is on connection far, and default on near"),
        (["move", "default", "distant", "--connection", "nope", "--yes"], 2, "no connection 'nope', only: "),
        (["move", "default", "other", "--take-back", "--yes"], 2, "--take-back goes with --connection and"),
        (["quarantine", "drop", "default", "abc", "--search", "x"], 2, "name one payload by ID"),
        (["jobs", "--url", "redis://127.0.0.1:1"], 1, "cannot be reached"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(file, capsys, words, code, line):
    url = [] if "--url" in words else file
    done = in_process.queuepool(capsys, *words, *url)

    assert (code, "", True) == (done.returncode, done.stdout, line in done.stderr)
    assert 1 == len(done.stderr.splitlines())
