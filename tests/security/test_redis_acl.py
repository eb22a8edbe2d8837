"""Each role in conf/redis-acl.conf can do all of its work, and nothing else."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from queuepool import Flow
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDenied, StoreError
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import OBJECT_JOB
from queuepool.payload.lease import NOTHING
from queuepool.payload.limits import NO_PART, PlaceAsked, holding, job_word
from queuepool.payload.php_values import build_command
from queuepool.stores.arrivals import Arrival
from queuepool.stores.commands import CommandOutcome, RemoteCommand
from queuepool.stores.contract import MovedJob, NewJob, Wake
from queuepool.stores.records import RecordKey
from queuepool.stores.values import AlertClaim
from tests.support.eventually import eventually
from tests.support.flowapp import step
from tests.support.graphs import ended, taken
from tests.support.limitapp import calls, imports
from tests.support.lines import without_silences
from tests.support.pools import Site
from tests.support.redis_server import PREFIX, start_redis
from tests.support.samples import ids, payload

RECIPE = Path(__file__).parents[2] / "conf" / "redis-acl.conf"
ROLES = ("producer", "worker", "viewer", "operator")
ROOT = "user root on >root ~* &* +@all\n"
#: all of a worker's keys but those of steps
WITHOUT_STEPS = ("~queues:*", *(f"~queuepool:{first}*" for first in "abcdefghijklmnopqrtuvwxyz"), "~illuminate:*")
As = Callable[[str], Site]


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """The socket of a server with the recipe's users and one that may do anything."""
    with tempfile.TemporaryDirectory(prefix="queuepool-redis-") as folder:
        users = Path(folder, "users.conf")
        users.write_text(RECIPE.read_text() + ROOT)
        server = start_redis(folder, "--include", str(users))
        try:
            yield f"{folder}/redis.sock"
        finally:
            server.kill()
            server.wait()


@pytest.fixture
def root(guarded: str) -> Iterator[redis.Redis]:
    with redis.Redis(unix_socket_path=guarded, username="root", password="root") as client:
        client.flushall()
        client.execute_command("ACL", "LOG", "RESET")
        yield client


@pytest.fixture
def login(guarded: str, root: redis.Redis, tmp_path: Path) -> Iterator[As]:
    """A site of this role's."""
    opened: list[Queue] = []

    def site(role: str) -> Site:
        connection = ConnectionSettings(url=f"unix://queuepool-{role}:CHANGE-{role}@{guarded}", block_for=1.0)
        opened.append(Queue(connection))
        return Site(connection, tmp_path, opened[-1])

    yield site
    for queue in opened:
        queue.close()


def denials(root: redis.Redis) -> list[str]:
    """What was refused to anybody: user, what kind, command or key."""
    return [f"{row['username']} {row['reason']} {row['object']}" for row in root.acl_log()]


def test_a_flow_is_written_run_looked_at_and_cancelled_each_by_its_role(login, root):
    flow = Flow("album")
    flow.add(step.call("b"), after=flow.add(step.call("a")))
    found = flow.push_to(login("producer").queue)
    worker, viewer, operator = (login(role).queue.stores for role in ("worker", "viewer", "operator"))
    [lease] = taken(worker.queue).values()
    assert ended(worker.queue, lease)

    assert [found] == [one.id for one in worker.flows.under_way()]
    assert ["album"] == [one.name for one in viewer.flows.page()]
    assert ["d", "r"] == [one.letter for one in viewer.flows.members(found)]
    with pytest.raises(StoreDenied):
        viewer.flows.cancel(found)
    root.execute_command("ACL", "LOG", "RESET")
    assert operator.flows.cancel(found)
    assert [] == denials(root)


def test_a_pool_is_shown_in_horizon_with_the_rights_that_the_recipe_names(login, root):
    site = login("worker")
    shown = ("--horizon", "laravel_horizon:")
    with site.pool(*shown) as pool:
        eventually(lambda: 1 == pool.log().count("not shown in Horizon: the user may not"))
        login("producer").push()
        eventually(lambda: site.trail(event="end"))
    root.execute_command("ACL", "SETUSER", "queuepool-worker", "~laravel_horizon:*", "+sadd")
    root.execute_command("ACL", "LOG", "RESET")
    with site.pool(*shown):
        eventually(lambda: root.hgetall("laravel_horizon:queue:default") or root.zcard("laravel_horizon:masters"))
    assert [] == denials(root)


def test_jobs_with_limits_are_parked_run_looked_at_and_put_back_each_by_its_role(login, root):
    one, rate = PlaceAsked("import", NO_PART, 1), PlaceAsked("stripe", NO_PART, 9, 60.0)
    producer, worker, viewer, operator = (login(role).queue.stores for role in ROLES)
    producer.queue.push("default", [NewJob(payload(name), None, job_word(name), [one, rate]) for name in "abc"])
    assert 2 == viewer.limits.parked("default")
    worker.limits.in_use = True
    [lease] = taken(worker.queue).values()
    assert worker.limits.enter(holding(lease), "a", [one, rate]).is_in
    assert [True] == worker.queue.renew([lease])
    worker.limits.declare("import", 2, 0.0)
    worker.limits.sweep("import")
    assert [2, 9] == [limit.number for limit in viewer.limits.all()]
    assert ["import"] == [key.key for key in viewer.limits.by_key()]
    assert payload("c") == viewer.limits.find("default", "c").payload
    assert operator.limits.set("import", 3)
    operator.limits.sweep("import")
    assert operator.limits.unpark("default") == 0
    assert worker.queue.finish(holding(lease), NOTHING)

    assert [] == denials(root)


@pytest.mark.thorough("the test before it does each step of such a job by its role")
def test_a_pool_runs_jobs_with_limits_as_the_worker(login, root):
    site = login("worker")
    for number in range(6):
        site.queue.push(imports.name, {"tenant": "a", "seconds": 0.1})
        site.queue.push(calls.name, {"tenant": str(number)})
    with site.pool("--workers", "3", "--modules", "tests.support.limitapp"):
        eventually(lambda: len(site.trail(what="begins")) == 12)
        eventually(lambda: not root.hlen("queuepool:limits:places"))

    assert [] == denials(root)


@pytest.mark.thorough("two tests above do most of it")
def test_jobs_with_limits_run_and_are_looked_at_and_set_each_by_its_role(login, root):
    login("producer").queue.stores.queue.push("default", [NewJob(payload(name)) for name in "abc"])
    worker, viewer, operator = (login(role).queue.stores for role in ("worker", "viewer", "operator"))
    tag = worker.queue.join()
    leases = [holding(lease) for lease in worker.queue.reserve(["default"], tag, 3).leases]
    assert worker.limits.declare("gpu", 1, 0.0) is None
    for lease in leases:
        worker.limits.enter(lease, ids([lease])[0], [PlaceAsked("gpu", "-", 1)])

    for stores in (worker, viewer, operator):
        [key] = stores.limits.by_key("gpu")
        assert (1, 2) == (key.held, key.parked[0].jobs)
        assert payload("b") == stores.limits.parked_job("default", key.parked[0].first)
    for stores in (viewer, operator):
        assert payload("c") == stores.limits.find("default", "c").payload
        assert 2 == sum(len(page) for page in stores.limits.pages("default"))
        assert [leases[0].receipt] == [one.payload for one in stores.limits.holders(["gpu"], ["default"], 9)]
    with pytest.raises(StoreDenied):
        viewer.limits.set("gpu", 2)
    root.execute_command("ACL", "LOG", "RESET")
    assert operator.limits.set("gpu", 2)
    operator.limits.sweep("gpu")
    worker.queue.finish(leases[0], NOTHING)
    assert [] == denials(root)


def test_a_pool_does_all_its_work_as_the_worker(login, root):
    site = login("worker")
    for job in ({"mode": "raise", "times": 1, "maxTries": 2}, {"mode": "raise", "delay": 0.1}, {"mode": "kill"}):
        site.push(**job)
    site.push("release", maxTries=2)
    site.push("raise", times=1, maxTries=2, maxExceptions=2, backoff=1)
    site.queue.push_raw(b"no job")
    site.queue.push_raw(b'{"id":"a","job":"do","data":{},"uuid":1e999,"attempts":0}')
    with site.pool("--workers", "2"):
        eventually(lambda: not site.queue.size() and root.llen("queuepool:quarantine:default") == 2)
        eventually(lambda: root.hlen("queuepool:pools"))

    assert 2 == root.zcard("queuepool:failed:times")
    assert [] == denials(root)


def test_attempts_are_kept_by_the_worker_and_shown_to_the_viewer(login, root):
    site, viewer = login("worker"), login("viewer")
    job = site.push("raise", times=1, maxTries=2)
    site.push("kill", maxTries=1)
    with site.pool("--workers", "1", "--keep-done", "1h"):
        eventually(lambda: 3 == root.llen("queuepool:attempts:default"))
    shown = json.loads(viewer.run("jobs", "default", *viewer.where, "--state", "done", "--json").stdout)
    found = json.loads(viewer.run("job", *viewer.where, job, "--json").stdout)

    assert ["done", "lost", "released"] == sorted(one["outcome"] for one in shown)
    assert ["released", "done"] == [one["outcome"] for one in found["ended"]]
    assert {"queuepool-viewer command scan"} >= {*denials(root)}  # for queues that nobody has named


def test_a_pool_watches_the_others_and_takes_keys_of_alerts_as_the_worker(login, root):
    stores = login("worker").queue.stores
    root.hset("queuepool:pools", "a", json.dumps({"at": root.time()[0], "host": "h", "pool": "p"}))

    assert ["p"] == [pool["pool"] for pool in stores.control.pools()]
    assert [AlertClaim.TAKEN, AlertClaim.OURS] == [
        stores.values.claim_alert("wait:default", "h:p", 60.0) for _ in range(2)
    ]
    assert stores.values.release_alert("wait:default", "h:p")
    assert [] == denials(root)


def test_a_lone_worker_does_its_work_as_the_worker(login, root):
    site = login("worker")
    site.push("raise", times=1, maxTries=2)
    done = site.work()

    assert (2, []) == (len(site.trail(event="start")), denials(root))
    assert "refuse" not in done.stderr


def test_a_unique_job_is_pushed_by_the_producer_and_its_lock_released_by_the_worker(login, root):
    pushes = login("producer").queue
    assert pushes.push("do", {"tag": "a"}, unique_id="a")
    assert not pushes.push("do", {"tag": "a"}, unique_id="a")
    assert pushes.push("do", {"tag": "b"}, unique_id="b", delay=60)
    site = login("worker")
    site.work()

    assert 1 == len(site.trail(event="start"))
    assert [b"laravel_unique_job:do:b"] == root.keys("laravel_unique_job:*")
    assert [] == denials(root)


def test_a_tracked_job_is_pushed_by_the_producer_and_followed_by_the_viewer(login, root):
    pushes, viewer = login("producer").queue, login("viewer").queue
    job = pushes.push("do", {"tag": "a"}, track=60, unique_id="a")
    later = pushes.push("do", {"tag": "b"}, track=60, delay=60)
    assert ("queued", "delayed") == (pushes.job(job).state, viewer.job(later).state)
    login("worker").work()

    assert "done" == viewer.wait(job, 5).state
    assert [] == denials(root)


def test_a_chain_of_laravel_goes_on_as_the_worker(login, root):
    site = login("worker")
    step = build_command("App\\Jobs\\Step", {"number": 1, "chained": ['O:1:"A":0:{}']})
    site.queue.push(OBJECT_JOB, {"commandName": "App\\Jobs\\Step", "command": step})
    (site.path / "steps.py").write_text(
        'from queuepool import job\n@job("App\\\\Jobs\\\\Step")\ndef step(number): ...\n'
    )
    (site.path / "pool.ini").write_text("[connection]\noutcomes = outcomes\n")
    site.work("-c", "pool.ini", "--modules", "steps")

    assert 1 == root.llen("queues:outcomes")
    assert [] == denials(root)


@pytest.mark.by_turns("more", "limits")
@pytest.mark.parametrize("more", [(), ("--keep-done", "1h")], ids=["alone", "with records"])
@pytest.mark.parametrize("limits", ["", ", limits=[Concurrency('one', 1)]"], ids=["without limits", "with a limit"])
def test_a_job_ends_though_the_right_to_its_steps_is_withdrawn_meanwhile(login, root, more, limits):
    site = login("worker")
    gate = site.path / "gate"
    (site.path / "stepped.py").write_text(
        "import os, time\nfrom queuepool import Concurrency, job, step\n"
        f'@job("stepped"{limits})\ndef stepped(gate):\n    step("first", int)\n'
        "    while not os.path.exists(gate): time.sleep(0.01)\n"
    )
    job = site.queue.push("stepped", {"gate": str(gate)})
    with site.pool("--workers", "1", "--modules", "stepped", *more):
        eventually(lambda: root.exists(f"queuepool:steps:{job}"))
        root.execute_command("ACL", "SETUSER", "queuepool-worker", "resetkeys", *WITHOUT_STEPS)
        try:
            gate.touch()
            eventually(lambda: not site.queue.size())
        finally:
            root.execute_command("ACL", "SETUSER", "queuepool-worker", "reset", *rules_of("queuepool-worker").split())

    assert 1 == root.exists(f"queuepool:steps:{job}")  # until it expires
    assert 0 == root.hlen("queuepool:failed")
    assert 0 == root.hlen("queuepool:limits:places")


def test_the_recipe_holds_with_laravels_prefixes(login, root, guarded):
    site = login("worker")
    rules = re.sub(r"([~&])", rf"\g<1>{PREFIX}", rules_of("queuepool-worker")).replace(">CHANGE", ">PREFIXED")
    root.execute_command("ACL", "SETUSER", "prefixed", *rules.split())
    url = f"unix://prefixed:PREFIXED-worker@{guarded}"
    key = f"{PREFIX}illuminate:queue:restart"
    site.connection = ConnectionSettings(url=url, prefix=PREFIX, restart_key=key)
    queue = Queue(site.connection)
    queue.push("do", {"mode": "raise", "times": 1}, options={"maxTries": 2})
    (site.path / "pool.ini").write_text(f"[connection]\nrestart_key = {key}\n")
    site.work("-c", "pool.ini")
    queue.close()

    assert 2 == len(site.trail(event="start"))
    assert [] == denials(root)


def rules_of(user: str) -> str:
    found = re.search(rf"^user {user} (.*)$", RECIPE.read_text(), re.MULTILINE)
    assert found
    return found[1]


def test_check_finds_that_the_worker_may_do_all_it_must(login):
    site = login("worker")
    done = site.run("check", *site.flags(), check=False)

    assert "every needed command is permitted" in done.stdout


def test_an_application_pushes_as_the_producer_and_can_neither_see_nor_take_a_job(login, root):
    queue = login("producer").queue
    queue.push("do")
    queue.bulk([("do", {}), ("do", {})], delay=0.5)
    queue.push("do", delay=60)

    assert (1, 3) == (root.llen("queues:default"), root.zcard("queues:default:delayed"))
    assert [] == denials(root)
    own = ["LRANGE queues:default 0 -1", "LPOP queues:default", "DEL queues:default", "BLPOP queues:default 0.1"]
    for command in [*own, "ZREM queues:default:delayed x", "LLEN queuepool:failed", "GET queuepool:workers"]:
        assert "the user may not" in refused(queue, *command.split())


def test_the_viewer_sees_everything_and_changes_nothing(login, root):
    one_of_each(login("worker"))
    root.hset("queuepool:pools", "dead", json.dumps({"at": 0, "host": "h", "pool": "p"}))
    site = login("viewer")
    stores = site.queue.stores
    [record] = stores.failed.page()
    [entry] = stores.records.quarantined("default")

    walk, [reserved] = stores.queue.walk("default", ("ready", "reserved")), stores.queue.first("default", 1)
    assert (1, 1) == (site.queue.size(), stores.failed.count())
    assert ([reserved], []) == ([job.payload for job in walk.page(9)], walk.page(9))
    assert [] == stores.failed.page(record.key)
    assert (record, b"no job") == (stores.failed.get(record.id), entry.payload)
    assert [] == denials(root)
    assert [] == stores.control.pools()
    for change in (
        site.queue.clear, stores.control.down, partial(stores.control.pause, "default"), partial(site.push, "ok"),
        partial(stores.failed.drop, [record.key]), partial(stores.failed.retry, record),
        partial(stores.records.drop_quarantined, "default", entry.id),
        partial(stores.records.requeue, "default", entry.id),
    ):  # fmt: skip
        with pytest.raises(StoreDenied):
            change()
    assert (1, 1, 1) == (site.queue.size(), stores.failed.count(), site.queue.sizes().quarantined)


def test_the_viewer_reads_the_history_that_the_worker_keeps(login, root):
    login("worker").queue.stores.values.keep_history("1m", 60, "a:p:1", "text", 600.0)

    assert [b"text"] == [one.text for one in login("viewer").queue.stores.values.history("1m", range(0, 120, 60)).texts]
    assert [] == denials(root)


def test_the_viewer_may_not_list_keys_so_size_counts_the_pools_queues_and_says_what_is_left_out(login):
    one_of_each(login("worker"))
    site = login("viewer")
    done = site.run("size", *site.where)

    assert ["QUEUE    SIZE", "default  1"] == done.stdout.splitlines()
    assert "the user may not run 'scan' (ACL)" in done.stderr


def test_a_user_who_may_not_push_takes_no_job_for_one_that_has_come(guarded, root):
    root.execute_command("ACL", "SETUSER", "half", "on", ">half", "~*", "&*", "+@all", "-rpush")
    number = "7f" * 16
    with closing(Queue(ConnectionSettings(url=f"unix://half:half@{guarded}"))) as half:
        stores, until = half.stores, half.stores.queue.now() + 60.0
        with pytest.raises(StoreDenied, match=r"'rpush'|'admit'"):
            stores.arrivals.admit("default", NewJob(b"{}"), None, number, until)
        assert Arrival.REFUSED is stores.arrivals.refuse(number)
        assert Arrival.CAME is stores.arrivals.admit("default", NewJob(b"{}"), until, "7e" * 16, until)
    root.execute_command("ACL", "DELUSER", "half")

    assert (0, 1) == (root.llen("queues:default"), root.zcard("queues:default:delayed"))


def test_the_operator_mends_and_cannot_take_a_job(login, root):
    one_of_each(login("worker"))
    queue = login("operator").queue
    stores, control = queue.stores, queue.stores.control
    [record] = stores.failed.page()
    [entry] = stores.records.quarantined("default")
    control.restart(), control.pause("default"), control.down()

    assert (True, True, True) == (control.read(["default"]).down, control.up(), control.resume("default"))
    assert stores.failed.retry(record)
    assert stores.records.requeue("default", entry.id)
    none = RecordKey("none", "0")
    assert ([], [False], []) == (stores.failed.older_than(1.0), stores.failed.drop([none]), control.pools())
    assert not stores.records.drop_quarantined("default", "none")
    assert login("producer").queue.push("do", unique_id="a")
    jobs = [job for job in stores.queue.walk("default", ("ready", "delayed")).page(9) if b"unique" not in job.payload]
    assert [True] == stores.queue.move("default", [MovedJob(jobs[0], jobs[0].payload)], "other")
    assert [True] == stores.queue.drop("default", jobs[1:2])
    assert stores.arrivals.place() == stores.arrivals.place()
    number, until = "7f" * 16, stores.queue.now() + 60.0
    assert Arrival.CAME is stores.arrivals.admit("other", NewJob(b"{}"), until, number, until)
    assert Arrival.CAME is stores.arrivals.refuse(number)
    stores.arrivals.forget([number])
    assert 2 == queue.clear("other")
    assert 2 == queue.clear()
    assert ([], []) == (denials(root), root.keys("laravel_unique_job:*"))
    # It takes parked jobs out of their lines, with the same command.
    assert "the user may not use a key or channel of 'lpop': queues:default (ACL)" == refused(
        queue, "LPOP", "queues:default"
    )


def test_the_operator_commands_pools_and_the_viewer_sees_who_did_what(login, root):
    operator, pool, viewer = (login(role).queue.stores for role in ("operator", "worker", "viewer"))
    command = RemoteCommand("aa", "pause", {}, "jo@web1", operator.queue.now(), "bb")
    [text] = operator.commands.send([command])
    [taken] = pool.commands.take("aa")
    pool.commands.answer(command, CommandOutcome.DONE, "paused")
    pool.journal.write("jo@web1", "pause", "pool default on web2")
    operator.journal.write("jo@web1", "clear", "queue default", 3)
    pool.control.note_left({"host": "web2", "pool": "default", "at": 1.0})

    assert command == taken
    assert not operator.commands.withdraw(command, text)
    assert ["paused"] == [answer.words for answer in operator.commands.answers("bb")]
    assert ["pause", "clear"] == [line.verb for line in viewer.journal.last(10)]
    assert 1 == len(viewer.control.left())
    assert viewer.control.read(()).news
    assert [] == denials(root)
    for role in ("producer", "viewer"):
        with pytest.raises(StoreDenied):
            login(role).queue.stores.commands.send([command])


def test_a_verb_that_is_forbidden_says_so_in_a_line(login):
    site = login("viewer")
    done = site.run("restart", *site.where, check=False)

    assert 1 == done.returncode
    assert (
        "queuepool: the user may not use a key or channel of 'restart': illuminate:queue:restart (ACL)" in done.stderr
    )
    assert 1 == len(done.stderr.splitlines())


def one_of_each(worker: Site) -> None:
    """A failed job, one that is no job, and one that is ready."""
    worker.push("fail")
    worker.queue.push_raw(b"no job")
    worker.work()
    worker.push("ok")


def refused(queue: Queue, *words: Any) -> str:
    with pytest.raises(StoreError) as caught:
        queue.stores.client.command(*words)
    return str(caught.value)


COMMANDS = """FLUSHALL; FLUSHDB; KEYS *; SCAN 0; CONFIG GET *; CLIENT LIST; CLIENT KILL ID 1; ACL LIST; ACL SETUSER x
    SCRIPT FLUSH; SCRIPT KILL; SHUTDOWN; DEBUG SLEEP 0; MONITOR; SAVE; MODULE LIST; REPLICAOF NO ONE; FUNCTION LIST
    LLEN sessions; PUBLISH other 1; SUBSCRIBE other; PSUBSCRIBE *; SET illuminate:queue:other 1; MIGRATE h 1 k 0 1"""
SCRIPTS = """call('config', 'get', '*'); call('flushall'); call('get', 'sessions:1'); call('llen', 'sessions')"""
FORBIDDEN = [
    *(command.split() for command in COMMANDS.replace("\n", ";").split(";")),
    *(["EVAL", f"return redis.{call}", 0] for call in SCRIPTS.split("; ")),
    ["EVAL", "return redis.call('get', KEYS[1])", 1, "sessions:1"],
]


@pytest.mark.parametrize("role", ROLES)
def test_nobody_reaches_the_server_itself_or_another_applications_keys(login, role):
    client = login(role).queue.stores.client
    for words in FORBIDDEN:
        with pytest.raises(StoreError):
            client.command(*words)


@pytest.mark.parametrize("role", ["producer", "worker", "viewer"])
def test_only_the_operator_broadcasts_a_restart(login, role):
    with pytest.raises(StoreError):
        login(role).queue.stores.control.restart()


def test_nobody_comes_in_without_a_password(login, guarded):
    site = login("worker")
    bare = replace(site.connection, url=f"unix://{guarded}")

    assert "the server rejected the user or password: Authentication required." == refused(Queue(bare), "PING")


# What is missing, or not right any more


@pytest.fixture
def meddle(root: redis.Redis) -> Iterator[Callable[..., object]]:
    """Change the worker's rules for one test."""
    yield lambda *rules: root.execute_command("ACL", "SETUSER", "queuepool-worker", *rules)
    root.execute_command("ACL", "SETUSER", "queuepool-worker", "reset", *rules_of("queuepool-worker").split())


def test_check_names_every_right_that_is_missing(login, meddle):
    meddle("-zadd", "-ltrim", "resetchannels")
    site = login("worker")
    done = site.run("check", *site.flags(), check=False)
    failures = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]

    assert 1 == done.returncode
    assert "FAIL connection default: the user may not run 'zadd' (ACL)" in failures
    assert "FAIL connection default: the user may not run 'ltrim' (ACL)" in failures
    assert [True] == ["queuepool:due:default" in line for line in failures if "stewards' channel" in line]


def test_a_steward_whose_rules_name_each_queues_channel_hears_of_its_queues(login, meddle, root):
    meddle("resetchannels", "&queuepool:due:default")
    store = login("worker").queue.stores.queue
    store.wait_for_change(["default"], 5.0)
    root.publish("queuepool:due:default", 1)

    assert Wake.DUE is store.wait_for_change(["default"], 5.0)
    with pytest.raises(StoreDenied, match="queuepool:due:other"):
        store.wait_for_change(["default", "other"], 5.0)


def test_check_names_the_locks_that_may_not_be_ended_with_their_jobs(login, meddle):
    site = login("worker")
    before = site.run("check", *site.flags(), check=False).stdout
    meddle("resetkeys", "~queues:*", "~queuepool:*", "%R~illuminate:*")
    after = site.run("check", *site.flags(), check=False).stdout

    assert [False, True] == ["'del' on laravel_unique_job:* (ACL)" in said for said in (before, after)]


def test_check_names_what_alerts_and_the_history_may_not_do_where_they_are_configured(login, meddle, root):
    meddle("-hgetall", "resetkeys", "~queues:*", "~queuepool:a*", "~queuepool:c*", "~queuepool:pools")
    site = login("worker")
    (site.path / "all.ini").write_text("[alerts]\n")
    (site.path / "none.ini").write_text("[pool]\nmetrics = no\n")
    done, without = (site.run("check", *site.flags("-c", f"{name}.ini"), check=False) for name in ("all", "none"))

    refused = "FAIL connection default: {} is refused: the user may not {} (ACL)"
    history = "use a key or channel of 'keep_history': queuepool:history:1m:0"
    assert 1 == done.returncode
    assert refused.format("reading the pools' notices for alerts", "run 'hgetall'") in done.stdout
    assert refused.format("keeping the history", history) in done.stdout
    assert "the key of an alert" not in done.stdout
    assert not re.search("the history|notices", without.stdout)
    assert "connection default" in without.stdout
    assert [] == root.keys("queuepool:history:*") + root.keys("queuepool:alert:*")


@pytest.mark.by_turns("command")
@pytest.mark.fault("F58")
@pytest.mark.parametrize("command", ["blpop", "zremrangebyscore", "mget"])
def test_a_pool_without_a_right_names_it_once_and_works_when_it_gets_it(login, meddle, command):
    site = login("worker")
    site.push("ok")
    meddle(f"-{command}")
    with site.pool("--workers", "1", wait=False) as pool:
        eventually(lambda: f"the user may not run '{command}' (ACL)" in pool.log())
        meddle(f"+{command}")
        eventually(lambda: site.trail(event="end"))

    assert 2 >= pool.log().count("(ACL)")
    assert "Traceback" not in pool.log()


def test_a_right_that_only_a_script_misses_is_told_with_where_to_look(login, meddle):
    site = login("worker")
    site.push("ok")
    meddle("-exists")
    done = site.work("--tries", "2")

    assert 1 == done.stderr.count(
        "the user may not run a command that 'reserve' needs (ACL): `queuepool check` names it"
    )
    assert 1 == site.queue.size()


@pytest.mark.thorough("a pool and a job that is done do so in the tests beside it")
@pytest.mark.fault("F58")
def test_a_steward_without_a_right_says_it_once_and_settles_when_it_gets_it(login, meddle, root):
    site = login("worker")
    meddle("-hset")  # in fail.lua
    site.push("kill", maxTries=1)
    with site.pool("--workers", "1") as pool:
        eventually(lambda: "steward" in pool.log() and "the user may not run 'hset' (ACL)" in pool.log())
        tries = root.info("commandstats")["cmdstat_evalsha"]["calls"]
        eventually(lambda: root.info("commandstats")["cmdstat_evalsha"]["calls"] > tries + 2)
        meddle("+hset")
        eventually(lambda: site.trail(event="after_failed"))

    assert (1, 0) == (pool.log().count("'hset'"), without_silences(pool.log()).count("store regained"))
    assert 1 == len(site.trail(event="start"))


@pytest.mark.fault("F58")
def test_a_lease_that_may_not_be_looked_up_is_not_taken_for_one_that_is_gone(login, meddle):
    site = login("worker")
    store = site.queue.stores.queue
    site.push("ok")
    [lease] = store.reserve(["default"], 1, 1).leases
    meddle("-zscore")
    with pytest.raises(StoreDenied, match="the user may not run 'zscore'"):
        store.renew([lease])
    meddle("+zscore")

    assert [True] == store.renew([lease])


@pytest.mark.fault("F58")
def test_a_job_that_is_done_is_settled_when_the_right_to_is_given_back(login, meddle):
    site = login("worker")
    gate = site.path / "gate"
    site.push("until", gate=str(gate))
    with site.pool("--workers", "1") as pool:
        eventually(lambda: site.trail(event="start"))
        meddle("-zrem")
        gate.touch()
        eventually(lambda: "the user may not run 'zrem' (ACL)" in pool.log())
        meddle("+zrem")
        eventually(lambda: not site.queue.size())

    assert 1 == len(site.trail(event="start"))


@pytest.mark.fault("F58")
def test_a_pool_whose_password_was_changed_says_it_once_and_goes_on_when_it_is_right_again(login, meddle, root):
    site = login("worker")
    with site.pool("--workers", "2") as pool:
        meddle("resetpass", ">another-password")
        root.execute_command("CLIENT", "KILL", "USER", "queuepool-worker")
        eventually(lambda: "the server rejected the user or password" in pool.log())
        meddle(">CHANGE-worker")
        eventually(lambda: "store regained" in pool.log())
        site.push("ok")
        eventually(lambda: site.trail(event="end"))

    log = without_silences(pool.log())
    assert (1, 1) == tuple(log.count(words) for words in ("store lost", "store regained"))
    assert "CHANGE-worker" not in pool.log()


@pytest.mark.thorough("the test before it has a password that becomes wrong and right again")
def test_a_pool_with_a_wrong_password_waits_and_says_why(login, meddle):
    meddle("resetpass", ">another-password")
    site = login("worker")
    with site.pool("--workers", "2", wait=False) as pool:
        eventually(lambda: "the server rejected the user or password" in pool.log())
        meddle(">CHANGE-worker")
        pool.wait_until_ready()

    assert (1, 0) == (pool.log().count("rejected the user or password"), pool.log().count("CHANGE-worker"))
