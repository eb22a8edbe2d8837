"""The pytest plugin: its fixtures in a project's own tests, plain and async, and what it costs those who use none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.support.each import each

ROOT = Path(__file__).parents[2]
PLUGIN = "queuepool.testing.plugin"
JOBS = """
from queuepool import current, job

DONE = []

@job
def send(to: str) -> None:
    DONE.append((to, current().attempts))
"""


def outcome_of(folder: Path, program: str, *flags: str) -> str:
    """What pytest says at the end of a run of these tests."""
    (folder / "shop.py").write_text(JOBS)
    (folder / "test_shop.py").write_text(f"from shop import DONE, send\n{program}")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env = ours | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", *flags]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100)
    return done.stdout + done.stderr


def test_it_is_installed_with_the_package():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")

    assert f"queuepool = {PLUGIN}" in setup["options.entry_points"]["pytest11"]


#: the tests of a project, the last two of them wrong
TESTS = """
def test_fake(queuepool_fake):
    send.dispatch("ada")
    queuepool_fake.assert_pushed(send, "ada")
    assert DONE == []

def test_run_now(queuepool_run_now):
    send.dispatch("ada")
    assert DONE.pop() == ("ada", 1)
    assert len(queuepool_run_now.done) == 1

def test_drain(queuepool_drain):
    send.dispatch("ada")
    assert DONE == []
    assert len(queuepool_drain().done) == 1
    assert DONE.pop() == ("ada", 1)

def test_as_current(queuepool_as_current):
    send("ada")
    assert DONE.pop() == ("ada", 1)
    assert queuepool_as_current.verdict is None

def test_wrong(queuepool_fake):
    send.dispatch("ada")
    queuepool_fake.assert_pushed(send, "bob")

def test_both(queuepool_fake, queuepool_run_now): ...
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def shown(folder: Path) -> str:
    """What one run says of all of them."""
    return outcome_of(folder, TESTS)


def test_each_tool_has_its_fixture(shown, folder):
    assert "1 failed, 4 passed, 1 error" in shown
    assert sorted(path.name for path in folder.iterdir()) == ["pytest.ini", "shop.py", "test_shop.py"]


def test_an_assertion_that_fails_shows_the_test_and_what_was_pushed(shown):
    assert "E       AssertionError: shop.send('bob') was never pushed" in shown
    assert re.search(r"(?m)^E +shop\.send\(to='ada'\) queue=default$", shown)
    assert "pushes.py:" not in shown.partition("short test summary")[0]


def test_two_fixtures_of_one_test_are_refused(shown):
    assert "run_now() within fake(), which a fixture may have put in force: use that one" in shown


def test_one_who_uses_no_fixture_loads_nothing(tmp_path):
    program = """
import sys

def test_nothing():
    ours = {name for name in sys.modules if name.startswith("queuepool")}
    assert not {name for name in ours if "stores" in name or "worker" in name}
    assert {name for name in ours if "testing" in name} == {"queuepool.testing", "queuepool.testing.plugin"}
    assert "sqlalchemy" not in sys.modules
"""
    assert "1 passed" in outcome_of(tmp_path, program)


@each("name", ["fake", "run_now", "drain", "as_current"])
def test_the_tools_are_also_attributes_of_the_package(name):
    import queuepool

    assert callable(getattr(queuepool.testing, name))
    assert name in dir(queuepool.testing)


def test_there_is_no_other_name():
    import queuepool.testing

    assert {name for name in queuepool.testing.__all__ if not callable(getattr(queuepool.testing, name))} == set()
    with pytest.raises(AttributeError, match="no attribute 'fakes'"):
        _ = queuepool.testing.fakes
