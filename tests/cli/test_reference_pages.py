"""The pages in docs/reference describe everything that the code has, and nothing else."""

from __future__ import annotations

import logging
import re
from dataclasses import fields

import pytest

import queuepool
from queuepool import errors, events, testing
from queuepool.board.states import State
from queuepool.cli.verbs import VERBS
from queuepool.config.loader import load
from queuepool.config.settings import KEYS
from queuepool.unix import exit_codes, signals
from queuepool.worker.context import StopReason
from tests.support.each import each
from tests.support.reference import ROOT, flags, make_reference, verbs

REFERENCE = ROOT / "docs/reference"


def reference(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text()


def part(text: str, heading: str) -> str:
    """What stands below a heading of the second level."""
    return re.split(r"(?m)^## ", text.split(f"\n## {heading}\n", 1)[1])[0]


def rows(text: str) -> list[list[str]]:
    """The cells of every table, without the heads."""
    tables = re.findall(r"(?m)(?:^\|.*\n)+", text)
    return [[cell.strip() for cell in row.split("|")[1:-1]] for table in tables for row in table.splitlines()[2:]]


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


@each("path", make_reference.pages())
def test_what_is_generated_is_what_would_be_generated_now(path):
    assert make_reference.pages()[path] == path.read_text(), "run scripts/docs"


def test_every_setting_has_its_place_in_the_reference_and_nothing_else_has_one():
    text = reference("configuration")
    found = {section: re.findall(r"(?m)^### `(.*)`$", part(text, f"`[{section}]`")) for section in KEYS}

    assert found == {section: sorted(keys, key=found[section].index) for section, keys in KEYS.items()}
    assert len(re.findall(r"(?m)^### ", text)) == sum(map(len, KEYS.values()))


def test_every_setting_has_its_variable():
    stated = re.findall(r"(?m)^- Environment: `(.*)`$", reference("configuration"))

    assert sorted(stated) == sorted(f"QUEUEPOOL_{one}_{key}".upper() for one, keys in KEYS.items() for key in keys)


def test_every_variable_of_the_reference_is_one(tmp_path):
    for variable in [make_reference.variable_of(section, key) for section, keys in KEYS.items() for key in keys]:
        with pytest.raises(errors.ConfigError, match=variable):
            load(None, environ={variable: "\x07"})


def test_every_public_name_is_in_the_reference_of_python():
    described = re.findall(r"(?m)^\.\. auto\w+:: queuepool\.(?:testing\.)?(\w+)(?:\(\))?$", reference("api"))

    assert {*queuepool.__all__, *testing.__all__} <= set(described)
    assert {f"`{name}`" for name in queuepool.__all__} <= {
        f"`{word}`" for row in rows(reference("api")) for word in re.findall(r"import (\w+)", row[0])
    }


def test_the_page_of_names_is_readable():
    named = rows(reference("api-names"))

    assert ["`JobId.wait(timeout=None)`", "As `Queue.wait`."] in named
    assert [] == [name for name, said in named if not said.endswith(".")]
    assert all("`progress`, `note`, `result`" in said for name, said in named if name == "`JobState`")


def test_every_verb_is_in_the_reference_and_nothing_else_is():
    assert list(verbs()) == re.findall(r"(?m)^## `(.*)`$", reference("cli"))
    assert set(VERBS) <= {path.removeprefix("queuepool ") for path in verbs()}


@each("path", verbs())
def test_every_flag_is_in_the_reference_and_nothing_else_is(path):
    stated = re.findall(r"(?m)^- `(-.*?)`:", part(reference("cli"), f"`{path}`"))

    assert flags(verbs()[path]) == {form for line in stated for form in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line)}


def event_rows() -> dict[str, list[str]]:
    text = reference("events")
    tables = [rows(part(text, heading)) for heading in ("Jobs", "Workers", "Pools and stores")]
    return {codes(row[0])[0]: row for table in tables for row in table}


def test_every_event_is_in_the_reference_and_nothing_else_is():
    bases = {"Event", "JobEvent", "FlowEvent", "AlertEvent", "JobFacts", "KilledAttempt"}

    assert sorted(set(events.__all__) - bases) == sorted(event_rows())


def test_the_facts_of_a_job_are_in_the_reference():
    stated = [codes(row[0])[0] for row in rows(reference("events").partition("\n## ")[0])]

    assert [field.name for field in fields(events.JobFacts)] == stated


@each("name", sorted(event_rows()))
def test_an_event_has_the_fields_and_the_line_that_the_reference_says(name):
    kind, (_, _, _, stated, line) = getattr(events, name), event_rows()[name]
    outside_of_brackets = re.sub(r"\([^)]*\)", "", stated)

    assert [field.name for field in fields(kind)] == codes(outside_of_brackets)
    assert f"`{kind.words}`, {logging.getLevelName(kind.level)}" == line


def test_every_reason_of_a_worker_that_leaves_is_in_the_reference_and_nothing_else_is():
    never_told = {StopReason.INTERRUPTED}  # the event is not emitted then
    sentence = reference("events").split("\nReasons of `WorkerStopping`: ")[1].split("\n\n")[0]

    assert {str(reason) for reason in set(StopReason) - never_told} == {
        word for word in codes(sentence) if not word.startswith("--")
    }


def test_every_exit_code_is_in_the_reference_and_nothing_else_is():
    known = {value for value in vars(exit_codes).values() if isinstance(value, int)}
    stated = {row[0] for heading in ("Commands", "Workers") for row in rows(part(reference("exit-codes"), heading))}

    assert {f"{code}" for code in known} == {code for code in stated if not code.startswith("signal ")}
    workers = {exit_codes.LEFT, exit_codes.BOOT, exit_codes.MEMORY, exit_codes.BROKEN}
    assert {f"{code}" for code in workers} | {"signal 9", "signal 14"} == {
        row[0] for row in rows(part(reference("exit-codes"), "Workers"))
    }


def test_every_signal_is_in_the_reference_and_nothing_else_is():
    to_pool, to_one = (
        {code for row in rows(part(reference("signals"), heading)) for code in codes(row[0])}
        for heading in ("To a pool", "To one process")
    )

    assert {signum.name.removeprefix("SIG") for signum in signals.HANDLED} == to_pool
    assert to_pool - {"CHLD", "TTIN", "TTOU"} | {"ALRM", "KILL", "RTMIN", "URG"} == to_one


def test_every_state_of_a_title_is_in_the_reference_and_nothing_else_is():
    stated = [codes(row[0])[0] for row in rows(reference("titles")) if len(row) == 2]

    assert sorted(state.name.lower() for state in State) == sorted(stated)


def test_every_public_name_is_in_the_reference_and_nothing_else_is():
    text = reference("api")

    assert sorted(queuepool.__all__) == sorted(re.findall(r"`from queuepool import (\w+)`", text))
    assert set(queuepool.__all__) == set(
        re.findall(r"auto(?:function|class|data):: queuepool\.(\w+)(?:\(\))?$", text, re.M)
    )


def test_the_tree_of_errors_has_them_all_and_nothing_else():
    known = {name for name, kind in vars(errors).items() if isinstance(kind, type)}

    assert known == set(re.findall(r"(?m)^[│├└─ ]*([A-Z]\w+)(?: |$)", (errors.__doc__ or "").partition("\n\n")[2]))
