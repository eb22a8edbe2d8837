"""The applications and tests that docs/web-frameworks.md shows work."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.cli.test_pages_and_examples import ROOT, blocks, part_of_program

PAGE = ROOT / "docs/web-frameworks.md"
COMMAND = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:queuepool"]


@pytest.mark.thorough("the page of documentation, as a whole")
def test_the_tests_of_the_page_pass(tmp_path):
    for name in ("fastapi", "httpx", "flask"):
        pytest.importorskip(name)
    for block in blocks(PAGE, "python"):
        part_of_program(block, tmp_path)
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("QUEUEPOOL_", "PYTEST_"))}
    env = settings | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(COMMAND, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)

    shown = sum(block.code.count("\ndef test_") for block in blocks(PAGE, "python"))
    assert re.search(rf"\b{shown} passed", done.stdout), done.stdout + done.stderr
    assert list(tmp_path.glob("*.db")) == []
