"""Each verb and each kind of process once in a program that is executed; other tests fork theirs, already imported."""

from __future__ import annotations

import json

import pytest

import queuepool
from queuepool.cli.verbs import VERBS
from tests.support.eventually import eventually
from tests.support.http_pages import Pages

pytestmark = pytest.mark.real_start

#: where they look, their operands, and what they print then; in an order that leaves the pool running
COMMANDS = {
    "check": ("store", [], "ok"),
    "migrate": ("store", [], ""),
    "push": ("store", ["do", "--data", '{"mode": "ok"}', "--queue", "kept"], ""),
    "size": ("store", ["kept"], "kept"),
    "monitor": ("store", ["kept"], "kept"),
    "jobs": ("store", ["kept"], "kept"),
    "drop": ("store", ["kept", "--name", "nope", "--yes"], "0 jobs dropped"),
    "move": ("store", ["kept", "other", "--name", "nope", "--yes"], "0 jobs moved"),
    "clear": ("store", ["kept", "--force"], "1 job"),
    "job": ("store", ["nope"], "nope"),
    "cancel": ("store", ["nope"], "nope"),
    "schedule": ("store", ["list"], "there are no schedules"),
    "failed": ("store", [], ""),
    "retry": ("store", ["all"], ""),
    "forget": ("store", ["nope"], "nope"),
    "flush": ("store", [], ""),
    "prune-failed": ("store", [], ""),
    "quarantine": ("store", ["list"], ""),
    "locks": ("store", ["list"], ""),
    "flow": ("store", ["list"], ""),
    "limits": ("store", ["list"], ""),
    "step": ("store", ["forget", "nope", "charge"], "nope"),
    "history": ("store", [], ""),
    "journal": ("store", [], "clear"),
    "down": ("store", [], ""),
    "up": ("store", [], ""),
    "status": ("place", [], "steward"),
    "top": ("place", ["--once"], "steward"),
    "metrics": ("place", [], "queuepool_up"),
    "stack": ("place", ["nope"], "nope"),
    "pause": ("place", [], ""),
    "continue": ("place", [], ""),
    "scale": ("place", ["2"], ""),
    "reload": ("place", [], ""),
    "restart": ("store", [], ""),
    "completion": ("nowhere", ["bash"], "complete"),
    "version": ("nowhere", [], f"queuepool {queuepool.__version__}\nCPython 3."),
}
#: run by the other tests here; `listen` by those in test_verbs.py, `web` by web/test_server.py
THAT_RUN = {"start", "work", "drain", "stop", "listen", "web"}


@pytest.mark.timeout(300)  # each of them starts anew
def test_every_verb_does_its_work(site):
    where = {"store": site.where, "place": [*site.where, "--runtime-dir", str(site.path / "run")], "nowhere": []}
    with site.pool("--workers", "1"):
        said = {}
        for verb, (at, operands, words) in COMMANDS.items():
            done = site.run(verb, *operands, *where[at], check=False)  # in this order, as some verbs have verbs
            is_refused = done.returncode == 2 and not words
            said[verb] = (done.stdout + done.stderr, is_refused or "Traceback" in done.stderr)

        assert {} == {verb: said[verb] for verb in COMMANDS if COMMANDS[verb][2] not in said[verb][0]}
        assert {} == {verb: text for verb, (text, is_broken) in said.items() if is_broken}
        assert "" == site.run("stop", *where["place"], "--wait", "60").stderr
        assert 3 == site.run("drain", *where["place"], check=False).returncode


def test_a_worker_without_a_master_runs_what_there_is(site):
    site.push("ok")
    site.work()

    assert 1 == len(site.trail(event="end"))


def test_a_pool_has_processes_of_every_role(site):
    pages = Pages()
    with site.pool("--workers", "1", "--preload", "--listen", pages.address) as pool:
        eventually(lambda: pages.status("/readyz") == 200)
        status = json.loads(site.run("status", "--runtime-dir", str(site.path / "run"), "--json").stdout)

        assert ["steward", "template", "web", "worker"] == sorted(one["role"] for one in status[0]["processes"])
        assert pool.pid == status[0]["master"]


def test_every_verb_is_started_here():
    assert set(VERBS) == set(COMMANDS) | THAT_RUN
