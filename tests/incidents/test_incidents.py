"""The incidents of scripts/incidents are answered as its page says, and the page shows what matters."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.bench.rig import ROOT
from tests.chaos.hosts import are_allowed
from tests.incidents.console import Told
from tests.incidents.incident import Answer, Incident
from tests.incidents.page import INCIDENTS, PATH, text

FOLDED = "pool web: running\n  workers=2\nworkers: auto\npool billing: running\n  alert since today: a queue\n  waits"


@pytest.mark.thorough("each verb has tests of its own, and this takes four minutes")
@pytest.mark.timeout(3600)
def test_each_incident_is_answered_by_two_commands_at_most():
    if not are_allowed():
        pytest.skip("needs root: its hosts are namespaces")
    command = [sys.executable, "-m", "tests.incidents", "--check"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)

    assert 0 == done.returncode, f"{done.stdout[-5000:]}\n{done.stderr[-5000:]}"


def test_words_are_found_across_the_lines_of_a_terminal():
    told = Told("queuepool status", FOLDED, 0)

    assert [] == told.lacks(["web: running workers=2", "a queue waits"])
    assert ["workers=3"] == told.lacks(["workers=3", "pool web"])


def test_an_excerpt_keeps_folded_lines_whole_and_marks_what_is_left_out():
    told = Told("queuepool status", FOLDED, 0)

    assert FOLDED == Answer(told).shown
    assert "pool web: running\n  workers=2\n…" == Answer(told, ["running workers=2"]).shown
    assert "…\npool billing: running\n  alert since today: a queue\n  waits" == Answer(told, ["queue waits"]).shown


def test_the_page_has_each_command_and_its_answer_below_what_has_happened():
    incident = Incident("A queue grows", "Jobs wait.", lambda stage: iter(()), "Wait.")
    written = text({incident: [Answer(Told("queuepool size", "default 3", 0))]})

    assert written.endswith(
        "\n## A queue grows\n\nJobs wait.\n\n```sh\nqueuepool size\n```\n\n```text\ndefault 3\n```\n\n**Next.** Wait.\n"
    )


def test_the_page_is_of_these_incidents_and_has_one_command_or_two_for_each():
    page = PATH.read_text()
    sections = page.split("\n## ")[1:]

    assert text(dict.fromkeys(INCIDENTS, ())) == re.sub(r"(?ms)^```(sh|text)\n.*?^```\n\n", "", page)
    assert {1, 2} >= {section.count("\n```sh\n") for section in sections}
