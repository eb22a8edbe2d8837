"""docs/reference/json.md has exactly the keys that each verb prints with ``--json``, and says rightly what they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from queuepool.board import open_alerts
from queuepool.board.board import Board
from queuepool.board.open_alerts import OpenAlert
from queuepool.cli.verbs import verbs
from queuepool.jobs.composing import chain, flow_of
from queuepool.stores.due_log import DueLine, DueLog
from tests.support import in_process
from tests.support.eventually import eventually
from tests.support.flowapp import step
from tests.support.pools import ROOT

PAGE = (ROOT / "docs/reference/json.md").read_text()
#: what a value may be, by the first words of the second column
KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,), "number": (int, float), "yes or no": (bool,), "list": (list,), "list of texts": (list,),
    "object": (dict,), "any value": (object,),
}  # fmt: skip
#: objects whose keys are names of queues, events or arguments
BY_NAME = {"events", "buckets[].events", "buckets[].queues", "arguments"}
APP = """
from pathlib import Path
from queuepool import Concurrency, current, job, step
from tests.support.eventually import eventually

@job("held", track=600, schedule="1h")
def held(gate=""):
    step("first", int)
    current().progress(0.5, "half")
    eventually(lambda: Path(gate).exists())

@job("once", unique="all")
def once(): ...

@job("fails", tries=1, limits=[Concurrency("few", 5)])
def fails(): raise ValueError("as asked")
"""


class Form:
    """The keys of a section of the page: by path, what the value may be and whether it may be missing."""

    def __init__(self, text: str) -> None:
        rows = re.findall(r"(?m)^\| `([^`]+)` \| ([^|]+) \| ([^|]*)\|$", text)
        self.kinds = {path: kind.strip() for path, kind, _ in rows}
        self.optional = {path for path, _, words in rows if "may be missing" in words}

    def problems(self, *documents: Any) -> list[str]:
        """What of these is not as it is said, and what is said that none of them has."""
        found = [one for document in documents for one in _paths(document)]
        seen = {path for path, _ in found}
        wrong = [f"{path}: {value!r}" for path, value in found if not self._is_right(path, value)]
        missing = {path for path in self.kinds if path not in seen}
        return [*wrong, *(f"not there: {path}" for path in missing)]

    def lacks(self, one: dict[str, Any]) -> list[str]:
        """The keys of the top level that are always there, and are not in this object."""
        return [path for path in self.kinds if "[" not in path and "." not in path and path not in one]

    def _is_right(self, path: str, value: Any) -> bool:
        kind, _, rest = self.kinds.get(path, "").replace(", or null", " or null").partition(" or null")
        if kind not in KINDS or rest:
            return False
        if value is None:
            return "null" in self.kinds[path]
        return isinstance(value, KINDS[kind]) and (kind != "number" or not isinstance(value, bool))


def _paths(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each key with its value, by its path; ``a[].b`` in a list."""
    if isinstance(value, dict) and path not in BY_NAME:
        for key, inner in value.items():
            below = f"{path}.{key}" if path else key
            yield below, inner
            yield from _paths(inner, below)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{path}[]" if path else path)


def form(heading: str) -> Form:
    return Form(re.split(r"(?m)^## ", PAGE.split(f"\n## `queuepool {heading}`\n", 1)[1])[0])


def part(heading: str, number: int) -> Form:
    """One of several tables of a section."""
    text = re.split(r"(?m)^## ", PAGE.split(f"\n## `queuepool {heading}`\n", 1)[1])[0]
    return Form(re.findall(r"(?m)(?:^\|.*\n)+", text)[number])


def test_every_verb_with_json_has_its_section():
    def found(group: click.Group, path: str) -> Iterator[str]:
        for name in group.list_commands(click.Context(group)):
            command = group.get_command(click.Context(group), name)
            if isinstance(command, click.Group):
                yield from found(command, f"{path}{name} ")
            elif command and any(option.name == "as_json" for option in command.params):
                yield f"{path}{name}"

    described = re.findall(r"(?m)^## `queuepool ([^`]+)`$", PAGE)

    assert {*found(verbs, "")} == {*described} - {"status --all", "failed ID"}


def test_each_form_is_as_the_page_says(site, capsys):
    (site.path / "forms.py").write_text(APP)
    gate = site.path / "gate"
    place = ("--runtime-dir", str(site.path / "run"))

    def said(verb: str, *words: str, place: tuple[str, ...] = ()) -> Any:
        line = (verb, *words, *site.where, *place, "--json")
        if "--modules" in words:  # whose jobs would stay in this process
            return json.loads(site.run(*line, check=False).stdout)
        return json.loads(in_process.queuepool(capsys, *line).stdout)

    tracked = site.queue.push("held", {"gate": str(gate)}, track=600)
    failed = site.queue.push("fails", options={"maxTries": 1})
    site.queue.push_raw(b"no job")
    site.queue.push("once", queue="other", unique_id="all")
    site.queue.push("fails", queue="low")
    flow = flow_of(chain(step.call("a"), step.call("b"))).push_to(site.queue)
    [idle] = said("status", place=place)
    flags = "--workers 2 --max-workers 3 --modules forms --queue default*2,low*1 --keep-done 1h"
    with site.pool(*flags.split()) as pool:
        eventually(lambda: (job := site.queue.job(tracked)) and job.progress)
        eventually(lambda: site.queue.stores.failed.get(failed))
        eventually(lambda: site.queue.sizes().quarantined)
        site.run("pause", *site.where, "low")
        DueLog(site.queue.stores.values).write("held", DueLine(7200, 7201.0, first=3600, reason="late"))
        [board] = [path for path in Path(pool.runtime).glob("*/board.*") if path.name.count(".") == 1]
        open_alerts.write(Board.open(board), [OpenAlert("wait", "default", 61.0, 60.0, since=1.0)])
        eventually(lambda: said("status", place=place)[0]["pauses"])
        [local] = said("status", place=place)
        everywhere = eventually(
            lambda: (found := said("status", "--all")) and found[0]["alerts"] and found[0]["pauses"] and found
        )
        lines = {
            "size": "size", "monitor": "monitor", "failed": "failed", "failed ID": f"failed {failed}",
            "job": f"job {tracked}", "quarantine list": "quarantine list", "locks list": "locks list",
            "schedule list": "schedule list --modules forms", "check": "check --modules forms",
            "schedule next": "schedule next held --modules forms", "journal": "journal",
            "schedule show": "schedule show held --modules forms",
            "jobs": "jobs --state ready,delayed,reserved,running,failed,done",
            "limits list": "limits list", "flow list": "flow list", "flow show": f"flow show {flow}",
        }  # fmt: skip
        forms = {heading: said(*line.split()) for heading, line in lines.items()}
        untracked = said("job", failed)
        gate.touch()
        eventually(lambda: "done" == site.queue.job(tracked).state)
    history = eventually(lambda: (found := said("history")) and found["jobs"] and found)

    wrong = {heading: form(heading).problems(found) for heading, found in forms.items()}
    wrong["job"] = form("job").problems(forms["job"], untracked)
    wrong["history"] = form("history").problems(history)
    wrong["status"] = part("status", 0).problems(local)
    wrong["status, not running"] = part("status", 1).problems(idle)
    wrong["status --all"] = [
        one for one in _both(part("status", 0), form("status --all")).problems(everywhere)
        if one.removeprefix("not there: ") not in LOCAL
    ]  # fmt: skip

    assert {} == {heading: problems for heading, problems in wrong.items() if problems}
    assert [] == [*form("job").lacks(forms["job"]), *form("job").lacks(untracked)]


#: what only the pool's own host knows
LOCAL = {"directory", "store", "prefix", "configuration", "working_directory", "user", "left_by_others"}


def _both(one: Form, other: Form) -> Form:
    found = Form("")
    found.kinds, found.optional = one.kinds | other.kinds, one.optional | other.optional
    return found
