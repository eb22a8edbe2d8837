"""``check --peek`` says which of Laravel's features the waiting jobs use; it and ``monitor`` tell of old outcomes."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import CONTEXT
from queuepool.payload.php_values import serialize
from tests.support.commands import ROOT, queuepool
from tests.support.samples import payload

KEY, OTHER_KEY = (f"base64:{base64.b64encode(bytes([number]) * 32).decode()}" for number in (1, 2))
APP_KEY = "QUEUEPOOL_CONNECTION_APP_KEY"
STEP = "App\\Jobs\\Step"
JOBS = f"from queuepool import job\n@job({STEP!r})\ndef step(number: int) -> None: ...\n"


@dataclass
class Place:
    """A queue in SQLite and the configuration beside it."""

    path: Path
    queue: Queue

    def configure(self, *connection: str) -> None:
        lines = ["[pool]", "modules = jobs", "[connection]", f"url = sqlite:///{self.path}/q.db", *connection]
        (self.path / "pool.ini").write_text("\n".join(lines))

    def push(self, number: int = 1, /, **properties: Any) -> None:
        self.queue.push_object(STEP, {"number": number, **properties})

    def push_raw(self, **fields: Any) -> None:
        self.queue.push_raw(payload(**fields), queue="default")

    def hold(self, *keys: str) -> None:
        """Locks as Laravel takes them."""
        with closing(sqlite3.connect(self.path / "q.db")) as database, database:
            for key in keys:
                database.execute("INSERT INTO cache_locks VALUES (?, 'me', 4000000000)", (key,))

    def run(self, verb: str, *flags: str, **env: str) -> Any:
        places = {"PYTHONPATH": f"{self.path}:{ROOT}"}
        return queuepool(verb, "-c", str(self.path / "pool.ini"), *flags, env={**places, **env})

    def peek(self, most: int = 10, **env: str) -> list[tuple[str, str]]:
        """(grade, words) of what is found in the queue."""
        rows = json.loads(self.run("check", "--peek", str(most), "--json", **env).stdout)
        return [(row["grade"], row["words"]) for row in rows if row["what"] == "queue default"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    url = f"sqlite:///{tmp_path}/q.db"
    queuepool("migrate", "--url", url)
    (tmp_path / "jobs.py").write_text(JOBS)
    with closing(Queue(ConnectionSettings(url=url, app_key=bytes([1]) * 32))) as queue:
        found = Place(tmp_path, queue)
        found.configure()
        yield found


def test_plain_jobs_use_nothing_and_all_stay(place: Place) -> None:
    for number in range(3):
        place.push(number)

    assert [("ok", "2 jobs read, none uses a feature of Laravel's workers")] == place.peek(2)
    assert 3 == place.queue.size()


def test_nothing_is_read_unless_asked(place: Place) -> None:
    place.push(chained=["O:1:…"])

    assert "queue default" not in place.run("check").stdout


def test_a_chain_and_a_batch_are_refused_without_outcomes(place: Place) -> None:
    for _ in range(2):
        place.push(chained=["x"], chainCatchCallbacks=[["App\\Jobs\\Callbacks", "caught"]])
    place.push(batchId="9d2e")
    first, chain, batch = place.peek()

    assert ("ok", "3 jobs read") == first
    assert ("FAIL", True) == (chain[0], chain[1].startswith(f"2 jobs: {STEP} is followed by 1 more of its chain and"))
    assert ("FAIL", True) == (batch[0], f"1 job: {STEP} belongs to a batch" in batch[1])
    assert 1 == place.run("check", "--peek", "1").returncode


def test_with_outcomes_they_go_on(place: Place) -> None:
    place.configure("outcomes = after")
    place.push(chained=["x"], batchId="9d2e")

    assert [
        ("ok", "1 job read"),
        ("ok", f"1 job: {STEP}: chain (continued through queue after), batch (continued through queue after)"),
    ] == place.peek()


def test_what_foreign_ignores_is_named(place: Place) -> None:
    place.configure("foreign = ignore")
    place.push(chained=["x"], middleware=[])

    assert ("warn", f"1 job: {STEP}: chain: dropped by foreign = ignore") == place.peek()[1]


@pytest.mark.thorough("a batch is refused or goes on above")
def test_a_batch_whose_database_is_unknown_is_told(place: Place, redis_socket: str) -> None:
    url = f"unix://{redis_socket}"
    (place.path / "pool.ini").write_text(f"[pool]\nmodules = jobs\n[connection]\nurl = {url}\noutcomes = after\n")
    with closing(Queue(ConnectionSettings(url=url))) as queue:
        queue.push_object(STEP, {"number": 1, "batchId": "9d2e"})

    assert ("warn", f"1 job: {STEP}: it cannot see its batch while it runs: set batches_url") in place.peek()


def test_debounced_jobs_middleware_and_closures_are_refused(place: Place) -> None:
    place.configure("outcomes = after")
    place.push(debounceOwner="me")
    place.push(middleware=["x"])
    place.queue.push_object("Illuminate\\Queue\\CallQueuedClosure", {})
    _, debounced, middleware, closure = place.peek()

    assert ["FAIL"] * 3 == [debounced[0], middleware[0], closure[0]]
    assert [True, True, True] == [
        "was debounced" in debounced[1], "has the middleware 'x'" in middleware[1], "a closure holds PHP" in closure[1],
    ]  # fmt: skip


def test_a_unique_lock_is_named_and_whether_it_is_within_reach(place: Place) -> None:
    for store in ("database", "dynamodb"):
        hidden = {
            "laravel_unique_job_cache_store": serialize(store),
            "laravel_unique_job_key": serialize(f"laravel_unique_job:{STEP}:7"),
            "laravel_unique_job_lock_owner": serialize("me"),
        }
        place.push_raw(**{**_object(), CONTEXT: {"data": {"trace": serialize("t1")}, "hidden": hidden}})
    lock = f"laravel_unique_job:{STEP}:7"
    place.hold(lock)

    assert [
        ("ok", "2 jobs read"),
        ("ok", f"1 job: {STEP}: unique lock {lock!r} (released here), context"),
        ("warn", f"1 job: {STEP}: its unique lock {lock!r} is in the cache store 'dynamodb', which is out of reach: "
                 "it stays held"),
        ("ok", f"1 job: {STEP}: context"),
    ] == place.peek()  # fmt: skip

    place.configure("outcomes = after")
    assert ("ok", f"1 job: {STEP}: unique lock {lock!r} (released by Laravel), context") in place.peek()


LOCK = f"laravel_unique_job:{STEP}:7"


def _locked() -> dict[str, Any]:
    hidden = {
        "laravel_unique_job_cache_store": serialize("database"),
        "laravel_unique_job_key": serialize(LOCK),
    }
    return {**_object(), CONTEXT: {"data": {}, "hidden": hidden}}


def test_a_lock_is_looked_for_and_not_promised(place: Place) -> None:
    place.push_raw(**_locked())
    [_, lost, named] = place.peek()

    assert ("ok", f"1 job: {STEP}: unique lock {LOCK!r}") == named
    words = f"1 job: {STEP}: its unique lock {LOCK!r} is not held at sqlite:///"
    assert ("warn", True) == (lost[0], lost[1].startswith(words))
    assert lost[1].endswith("Laravel has it elsewhere (lock_url), or it has expired")


def test_a_lock_under_another_prefix_is_found_and_the_setting_is_named(place: Place) -> None:
    place.push_raw(**_locked())
    place.hold(f"shop-cache-{LOCK}")
    [_, misplaced, _] = place.peek()

    assert f"is held as 'shop-cache-{LOCK}' at".replace("\\", "\\\\") in misplaced[1]
    setting = misplaced[1].rpartition(": set ")[2]
    assert "restart_key = shop-cache-illuminate:queue:restart" == setting
    place.configure(setting)
    assert ("ok", f"1 job: {STEP}: unique lock {LOCK!r} (released here)") == place.peek()[1]


@pytest.mark.thorough("the test before it finds one under another prefix")
def test_a_lock_in_another_store_is_found_and_the_setting_is_named(place: Place, redis_socket: str) -> None:
    """As with a queue in Redis whose locks are in another of its databases, and the cache in a third."""
    url = f"unix://{redis_socket}"
    queue = ["[pool]", "modules = jobs", "[connection]", f"url = {url}?db=3", f"control_url = {url}?db=5"]
    (place.path / "pool.ini").write_text("\n".join(queue))
    with (
        closing(Queue(ConnectionSettings(url=f"{url}?db=3"))) as jobs,
        redis.Redis(unix_socket_path=redis_socket, db=5) as cache,
    ):
        locked = _locked()
        locked[CONTEXT]["hidden"]["laravel_unique_job_cache_store"] = serialize("redis")
        jobs.push_raw(payload(**locked), queue="default")
        cache.set(LOCK, "me")
        [_, misplaced, _] = place.peek()

    assert misplaced[1].endswith(", where no worker looks for it: set lock_url to the URL in control_url")


@pytest.mark.thorough("a lock that the payload names is told above")
def test_a_lock_of_which_the_payload_says_nothing_is_told(place: Place) -> None:
    """Laravel before 11.39 names none, nor does ``Schedule::job()``."""
    place.push_raw(**_object())
    place.hold(f"laravel_unique_job:{STEP}Two:7")
    assert [("ok", "1 job read, none uses a feature of Laravel's workers")] == place.peek()

    place.hold(LOCK)
    words = f"1 job: {STEP}: the unique lock {LOCK!r} is held, and this payload names none: give its handler unique_id"
    assert ("warn", words) in place.peek()
    (place.path / "jobs.py").write_text(JOBS.replace(")\ndef", ", unique_id=lambda number: 7)\ndef"))
    assert "warn" not in dict(place.peek())


def _object() -> dict[str, Any]:
    command = 'O:13:"App\\Jobs\\Step":1:{s:6:"number";i:1;}'
    call = "Illuminate\\Queue\\CallQueuedHandler@call"
    return {"displayName": STEP, "job": call, "data": {"commandName": STEP, "command": command}}


def test_whether_a_key_fits_an_encrypted_job(place: Place) -> None:
    place.queue.push_object(STEP, {"number": 1}, encrypted=True)
    keys: list[dict[str, str]] = [{APP_KEY: KEY}, {APP_KEY: OTHER_KEY}, {}]
    seen = [place.peek(**key)[1] for key in keys]

    assert ("ok", f"1 job: {STEP}: encrypted (a key fits)") == seen[0]
    assert [("FAIL", True), ("FAIL", True)] == [
        (seen[1][0], seen[1][1].endswith("it cannot be decrypted with these keys")),
        (seen[2][0], seen[2][1].endswith("it is encrypted, and there is no key: set app_key")),
    ]


def test_jobs_that_nothing_here_runs_are_told(place: Place) -> None:
    place.queue.push("elsewhere", {})
    place.queue.push_raw(b"no job", queue="default")
    _, unknown, bad = place.peek()

    assert ("FAIL", True) == (unknown[0], "no job is registered as 'elsewhere'" in unknown[1])
    assert ("FAIL", True) == (bad[0], bad[1].endswith("it goes to the quarantine"))


def test_outcomes_that_wait_for_more_than_a_minute_are_told(place: Place) -> None:
    place.configure("outcomes = after")
    place.queue.push_raw(payload(), queue="after")
    calm = place.run("check").stdout, place.run("monitor")
    with closing(sqlite3.connect(place.path / "q.db")) as database, database:
        database.execute("UPDATE jobs SET available_at = available_at - 7000")
    checked, watched = place.run("check").stdout, place.run("monitor")

    assert "ok   outcomes after: 1 waiting for Laravel, the oldest for" in calm[0]
    assert ("warn outcomes" in calm[0], calm[1].stderr) == (False, "")
    assert "warn outcomes after: 1 outcome waiting in queue after, the oldest for 70" in checked
    assert [True, True] == [
        watched.stderr.startswith("warn: 1 outcome waiting in queue after"), "after" in watched.stdout,
    ]  # fmt: skip


@pytest.mark.thorough("the test before it lists one with an outcome")
def test_an_empty_queue_of_outcomes_is_listed_too(place: Place) -> None:
    place.configure("outcomes = after")

    assert "ok   outcomes after: 0 waiting for Laravel" in place.run("check").stdout
    assert ["default", "after"] == [row["queue"] for row in json.loads(place.run("monitor", "--json").stdout)]
