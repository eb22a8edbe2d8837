"""``--reload``: in development a pool replaces its workers when a file that they have imported changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site

JOBS = """
import helper
from queuepool import job
from tests.support.poolapp import note

@job("tell")
def tell():
    import late
    note(event="told", values=helper.VALUE + late.VALUE)
"""


def write(path: Path, text: str) -> None:
    """As an editor does: the file is replaced. (Its size must change, too, or Python takes its older bytecode.)"""
    path.with_suffix(".draft").write_text(text)
    path.with_suffix(".draft").replace(path)


def told(site: Site) -> str:
    """What the code that now runs says."""
    before = len(site.trail(event="told"))
    site.queue.push("tell")
    return str(eventually(lambda: site.trail(event="told")[before:])[0]["values"])


def reloads(site: Site, pool: RunningPool, times: int) -> None:
    """Wait until it has reloaded so often, and all of its workers have the latest code."""
    status = ["status", "--json", *site.where, "--runtime-dir", pool.runtime]
    eventually(lambda: times == pool.log().count("changed: "))

    def facts() -> tuple[int, int]:
        [found] = json.loads(site.run(*status).stdout)
        return found["generation"], found["outdated"]

    eventually(lambda: (times + 1, 0) == facts())


@pytest.mark.by_turns("preload")
@pytest.mark.parametrize("preload", ["--no-preload", "--preload"])
def test_new_code_runs_after_a_file_was_saved_and_code_that_does_not_boot_stops_nothing(site: Site, preload: str):
    for name, text in (("jobs", JOBS), ("helper", "VALUE = 'a'"), ("late", "VALUE = 'z'")):
        write(site.path / f"{name}.py", text)
    with site.pool("--reload", preload, "--workers", "2", "--modules", "jobs") as pool:
        assert "az" == told(site)

        write(site.path / "helper.py", "VALUE = 'bbb'")
        reloads(site, pool, 1)
        assert "bbbz" == told(site)
        assert f"changed: {site.path}/helper.py" in pool.log()

        write(site.path / "late.py", "VALUE = 'yy'  # which only a job imports")
        reloads(site, pool, 2)
        assert "bbbyy" == told(site)

        write(site.path / "helper.py", "VALUE = ")
        eventually(lambda: "SyntaxError" in pool.log())
        assert "bbbyy" == told(site)

        write(site.path / "helper.py", "VALUE = 'cc'")
        reloads(site, pool, 4)
        assert "ccyy" == told(site)


def test_without_it_nobody_looks_at_files(site: Site) -> None:
    write(site.path / "jobs.py", JOBS)
    for name in ("helper", "late"):
        write(site.path / f"{name}.py", "VALUE = 'a'")
    with site.pool("--workers", "1", "--modules", "jobs") as pool:
        assert "aa" == told(site)
        assert [] == list(Path(pool.runtime).glob("*/board.*.modules*"))
