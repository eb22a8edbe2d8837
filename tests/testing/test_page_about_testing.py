"""The tests that docs/testing.md shows pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.cli.test_pages_and_examples import ROOT, blocks, part_of_program

PAGE = ROOT / "docs/testing.md"


@pytest.mark.thorough("the documentation; the tests beside this one are of the same fixtures")
def test_the_tests_of_the_page_pass(tmp_path):
    for block in blocks(PAGE, "python"):
        part_of_program(block, tmp_path)
    (tmp_path / "test_alias.py").write_text("def test_alias(fake):\n    fake.assert_nothing_pushed()\n")
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("QUEUEPOOL_", "PYTEST_"))}
    env = settings | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pytest",
        "-p",
        "queuepool.testing.plugin",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)

    shown = sum(block.code.count("\ndef test_") for block in blocks(PAGE, "python"))
    assert re.search(rf"\b{shown + 1} passed in", done.stdout), done.stdout
    assert list(tmp_path.glob("*.db")) == []
