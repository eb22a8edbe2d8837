"""The project that docs/django.md makes step by step works."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("django")

from tests.cli.test_pages_and_examples import ROOT, blocks
from tests.support.django_project import Project

PAGE = ROOT / "docs/django.md"


# Slow: Django boots for each command of the page.
@pytest.mark.thorough("the page of documentation, as a whole")
def test_the_project_of_the_page_works(tmp_path):
    commands = [line for block in blocks(PAGE, "sh") for line in block.code.splitlines()]
    project = Project(tmp_path)
    making = [sys.executable, "-m", "django", "startproject", "site_", "."]
    subprocess.run(making, cwd=tmp_path, env=project.env(), check=True, timeout=60)
    assert "python manage.py startapp shop" == commands.pop(2)
    project.manage("startapp", "shop")
    for block in blocks(PAGE, "python"):
        with (tmp_path / f"{block.module}.py").open("a" if block.module == "site_/settings" else "w") as file:
            file.write(block.code)

    assert ["python"] * 4 == [line.split()[0] for line in commands[2:]]
    for line in commands[2:]:
        done = project.manage(*line.split()[2:], *(["--pool", "web"] if "queuepool work" in line else []))
        assert "FAILED" not in done.stderr
