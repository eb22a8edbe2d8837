"""``queuepool schedule``: list, next, run, pause, resume, forget; and what ``check`` says of schedules."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from importlib import import_module
from itertools import pairwise

import pytest

from queuepool.cli import run
from queuepool.jobs.registry import REGISTRY
from queuepool.payload.envelope import decode
from queuepool.stores.values import Due
from tests.support.commands import queuepool
from tests.support.each import each
from tests.support.pools import ROOT

NOW = 1_764_000_000


@pytest.fixture(autouse=True)
def _without_schedules_of_other_tests(monkeypatch):
    """They are jobs of this process, as those of imported modules are."""
    import_module("tests.support.scheduleapp")  # registers its jobs once
    kept = {name: REGISTRY.find(name) for name in REGISTRY.names() if REGISTRY.find(name).options.schedule is None}
    monkeypatch.setattr(REGISTRY, "_handlers", kept)


@pytest.fixture
def cli(site, capsys, monkeypatch):
    """The verb with a configuration of two schedules, one of them for Laravel."""
    monkeypatch.chdir(ROOT)
    path = site.path / "pool.ini"

    def cli(*words: str, more: str = "", code: int = 0) -> str:
        path.write_text(
            f"""
[pool]
modules = tests.support.scheduleapp
[connection]
url = {site.connection.url}
prefix = {site.connection.prefix}
[schedule]
timezone = Europe/Berlin
[schedule:nightly]
cron = 30 2 * * *
job = tick
data = {{"kind": "daily"}}
overlap = no
[schedule:sync]
every = 60s
object = App\\Jobs\\Sync
queue = php
{more}
"""
        )
        capsys.readouterr()
        assert code == run([*words, "-c", str(path)])
        return "".join(capsys.readouterr())

    return cli


def waiting(site, queue: str = "default") -> list:
    return list(map(decode, site.queue.stores.queue.first(queue, 10)))


def test_the_schedules_are_listed_with_their_last_and_next_times(site, cli):
    rows = json.loads(cli("schedule", "list", "--json"))
    assert [("nightly", "tick", "30 2 * * * Europe/Berlin"), ("sync", "App\\Jobs\\Sync", "every 60 s")] == [
        (row["schedule"], row["job"], row["when"]) for row in rows
    ]
    assert [("new", None)] * 2 == [(row["state"], row["last"]) for row in rows]
    assert "T02:30:00+0" in rows[0]["next"]
    assert datetime.fromisoformat(rows[0]["next"]) == datetime.fromisoformat(rows[0]["next_utc"])

    now = int(site.queue.stores.queue.now())
    site.queue.stores.values.begin({"nightly": "", "sync": ""}, now - 60)
    last = now // 60 * 60
    site.queue.stores.values.fire(Due("sync", last, "php", b"{}"))
    rows = json.loads(cli("schedule", "list", "--json"))
    assert ["unserved", "ok"] == [row["state"] for row in rows]  # no pool runs; whether Laravel's do is unknown
    assert last == datetime.fromisoformat(rows[1]["last"]).timestamp()
    assert cli("schedule", "list").startswith("SCHEDULE  WHEN")


@pytest.mark.by_turns("settled", "state")
@pytest.mark.parametrize(
    ("settled", "state"), [(0, "ok"), (-200, "late"), (86400, "clock ahead")], ids=["ok", "late", "clock ahead"]
)
def test_the_state_says_what_is_wrong_with_a_schedule(site, cli, settled, state):
    site.queue.stores.values.begin({"sync": ""}, int(site.queue.stores.queue.now()) + settled)

    assert state == json.loads(cli("schedule", "list", "--json"))[1]["state"]
    assert ("the clock was ahead; to end this: queuepool schedule forget sync" in cli("check")) == (
        state == "clock ahead"
    )


def test_the_next_times_are_shown_without_a_server(cli, site):
    away = ("--url", "unix:///nonexistent.sock")
    rows = json.loads(cli("schedule", "next", "nightly", "--count", "3", "--json", *away))
    local, utc = ([datetime.fromisoformat(row[key]) for row in rows] for key in ("due", "utc"))

    assert local == utc
    assert timedelta(0) == utc[0].utcoffset()
    assert {(2, 30)} | {(3, 0)} >= {(one.hour, one.minute) for one in local}
    assert [1, 1] == [(after.date() - before.date()).days for before, after in pairwise(local)]
    assert 10 == len(cli("schedule", "next", "sync", *away).splitlines()) - 1


def test_a_job_is_pushed_by_hand_and_the_due_times_stay(site, cli):
    job_id = cli("schedule", "run", "nightly").strip()
    [payload] = waiting(site)

    assert (job_id, "tick", {"kind": "daily"}) == (payload.id, payload.name, payload.data)
    assert datetime.fromisoformat(payload.fields["scheduledFor"]).utcoffset()
    assert {} == site.queue.stores.values.marks()
    assert "nightly: its last job is still queued or running" in cli("schedule", "run", "nightly", code=1)
    assert 1 == len(waiting(site))


def test_an_object_is_pushed_as_laravel_reads_it(site, cli):
    cli("schedule", "run", "sync")
    [payload] = waiting(site, "php")

    assert "App\\Jobs\\Sync" == payload.name == payload.options.display_name
    assert 'O:13:"App\\Jobs\\Sync":0:{}' == payload.data["command"]


def test_schedules_are_paused_and_resumed_one_by_one_or_all(site, cli):
    def states() -> list[str]:
        return [row["state"] for row in json.loads(cli("schedule", "list", "--json"))]

    assert "schedule sync: paused on all hosts\n" == cli("schedule", "pause", "sync")
    assert ["new", "paused"] == states()
    assert "all schedules, connection default: paused on all hosts\n" == cli("schedule", "pause")
    assert ["paused", "paused"] == states()
    assert "all schedules, connection default: continues; still paused: sync\n" == cli("schedule", "resume")
    assert "schedule sync: continues\n" == cli("schedule", "resume", "sync")
    cli("schedule", "resume", "sync")
    assert ["new", "new"] == states()
    site.queue.stores.control.down()
    assert ["paused", "paused"] == states()


def test_a_schedule_is_forgotten_also_one_that_is_gone(site, cli):
    site.queue.stores.values.begin({"gone": "rule"}, NOW)

    assert "schedule gone: forgotten\n" == cli("schedule", "forget", "gone")
    assert "the store knows no schedule gone" in cli("schedule", "forget", "gone", code=1)


@each(
    ("words", "said"),
    [
        (("next", "nightli"), "there is no schedule 'nightli'; did you mean 'nightly'?"),
        (("run", "x"), "there is no schedule 'x'; only: nightly, sync"),
        (("pause", "sync", "x"), "there is no schedule 'x'; only: nightly, sync"),
        (("next", "sync", "--count", "-1"), "is not a whole number"),
        (("next",), "Missing argument 'NAME'"),
    ],
)
def test_a_wrong_name_is_refused(cli, words, said):
    assert said in cli("schedule", *words, code=2)


def test_without_schedules_there_is_nothing_to_list(site, capsys):
    assert 2 == run(["schedule", "list", *site.where])
    assert "there are no schedules in the configuration, and no job of its modules has one" in capsys.readouterr().err


# check


NIGHTLY = """
from queuepool import job

print("imported")

@job(schedule="0 3 * * *", queue="reports")
def cleanup(): ...
"""


@pytest.fixture
def declaring(tmp_path):
    """The verb in a directory with a module whose job declares a schedule, and a configuration without any."""
    (tmp_path / "nightly.py").write_text(NIGHTLY)
    (tmp_path / "pool.ini").write_text("[pool]\nmodules = nightly\nruntime_dir = run\n")

    def verb(*words: str) -> tuple[int, str, str]:
        done = queuepool("schedule", *words, "-c", "pool.ini", cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    assert 0 == queuepool("migrate", "-c", "pool.ini", cwd=tmp_path).returncode
    return verb


def test_what_jobs_declare_is_known_where_no_pool_runs(declaring):
    code, out, err = declaring("next", "nightly.cleanup", "--count", "1", "--json")
    [due] = json.loads(out)

    assert (0, "imported\n") == (code, err)
    assert (3, 0) == (datetime.fromisoformat(due["utc"]).hour, datetime.fromisoformat(due["utc"]).minute)
    assert ["nightly.cleanup"] == [row["schedule"] for row in json.loads(declaring("list", "--json")[1])]
    assert (0, "schedule nightly.cleanup: paused on all hosts\n") == declaring("pause", "nightly.cleanup")[:2]
    assert "paused" == json.loads(declaring("list", "--json")[1])[0]["state"]


def test_modules_given_by_hand_are_imported_in_place_of_the_configured_ones(declaring, tmp_path):
    (tmp_path / "other.py").write_text(NIGHTLY)

    assert ["other.cleanup"] == [
        row["schedule"] for row in json.loads(declaring("list", "--json", "--modules", "other")[1])
    ]


def test_modules_that_do_not_import_are_named_and_only_their_jobs_are_left_out(declaring, tmp_path):
    (tmp_path / "nightly.py").write_text("1 / 0\n")
    code, out, err = declaring("list")
    assert (1, "") == (code, out)
    assert "nightly" in err
    assert "ZeroDivisionError" in err

    with (tmp_path / "pool.ini").open("a") as settings:
        settings.write("[schedule:sync]\nevery = 60s\nobject = Sync\n")
    code, out, err = declaring("list", "--json")

    assert (0, ["sync"]) == (code, [row["schedule"] for row in json.loads(out)])
    assert [True] == [line.startswith("schedules of jobs are left out: ") for line in err.splitlines()]
    assert (0, "") == declaring("next", "sync")[::2]  # nothing had to be imported


@pytest.mark.bad_input("B130")
def test_check_examines_schedules(cli):
    more = """
[schedule:typo]
every = 60s
job = tock
[schedule:ours]
every = 60s
object = App\\Jobs\\Report
[schedule:wrong]
every = 60s
job = tests.schedules.other
data = {"tag": 1, "nosuch": [1]}
queue = nowhere
"""
    said = cli("check", more=more)

    assert "ok   schedule nightly: 30 2 * * * Europe/Berlin, next " in said
    assert "runs instead of a time that is skipped" in said
    assert "comes twice and runs the first time" in said
    assert "warn schedule sync: no pool of this configuration serves its queue php" in said
    assert "warn schedule sync: no module" not in said
    assert "warn schedule ours: no module registers its job App\\Jobs\\Report" in said
    assert "warn schedule typo: no module registers its job tock" in said
    assert "warn schedule wrong: no pool of this configuration serves its queue nowhere" in said
    assert (
        "warn schedule wrong: its job names queue mail, but the schedule pushes it to nowhere: set queue = ..." in said
    )
    assert "warn schedule wrong: data: bad arguments for tests.schedules.other: " in said


@pytest.mark.bad_input("B129")
def test_check_names_data_that_no_payload_can_hold(cli):
    more = '[schedule:surrogate]\nevery = 60s\njob = tick\ndata = {"a": "\\ud800"}\n'

    assert "fail schedule surrogate: [schedule:surrogate] data: " in cli("check", more=more, code=1).lower()
