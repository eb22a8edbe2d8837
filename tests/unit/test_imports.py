"""Each program imports only what it needs: modules that define jobs, a push, the frequent verbs."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: slow to import, each for those who need it
LIBRARIES = {"redis", "sqlalchemy", "psutil", "asyncio"}


def loaded_by(program: str) -> set[str]:
    """The modules that a new interpreter has in memory after this."""
    lines = f"import sys; before = set(sys.modules)\n{program}\nprint(*sys.modules.keys() - before, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=50)
    return set(done.stderr.splitlines()[-1].split())


def packages_of(modules: set[str]) -> set[str]:
    """Ours, by name."""
    return {name.split(".")[1] for name in modules if name.startswith("queuepool.")}


def test_the_package_alone_loads_nothing_of_itself():
    assert {"queuepool"} == {name for name in loaded_by("import queuepool") if name.startswith("queuepool")}


def test_a_module_that_defines_jobs_needs_no_store_no_client_and_no_events():
    loaded = loaded_by("from queuepool import Job, current, job\njob(print)\nclass A(Job):\n    def handle(self): ...")

    assert not LIBRARIES & loaded
    assert {"jobs", "payload", "settlement", "config", "unix", "errors"} >= packages_of(loaded)
    assert "queuepool.jobs.client" not in loaded


def test_the_masters_own_modules_lead_to_no_store_no_producer_and_nothing_of_the_users():
    loaded = loaded_by("import queuepool.master.loop")

    assert not (LIBRARIES | {"click"}) & loaded
    assert {"master", "board", "log", "payload", "config", "events", "unix", "errors"} == packages_of(loaded)


def test_metrics_cost_those_who_read_none_nothing():
    loaded = loaded_by(
        "import queuepool.pool.start, queuepool.pool.processes, queuepool.cli.status, queuepool.cli.push"
    )

    assert not {"prometheus_client", "http.server", "queuepool.metrics.server"} & loaded


def test_jobs_side_by_side_cost_a_worker_that_runs_one_at_a_time_no_module():
    loaded = loaded_by("import queuepool.pool.start, queuepool.pool.processes, queuepool.pool.worker_process")

    ours = {name.removeprefix("queuepool.worker.") for name in loaded if name.startswith("queuepool.worker.")}
    assert "slot_writer" in ours
    assert not {name for name in ours if name.startswith("lane_")} | ({"deadlines", "stepped"} & ours)


@pytest.mark.thorough("what a module takes to import is held by the tests above")
def test_a_queue_in_one_database_loads_no_other_databases_dialect(tmp_path):
    lines = f"from queuepool import connect\nconnect('sqlite:///{tmp_path}/queuepool.db').push('a', unique_id='b')"
    loaded = loaded_by(f"import os\nos.chdir({str(tmp_path)!r})\n{lines}")

    dialects = {name.rpartition(".")[2] for name in loaded if name.startswith("sqlalchemy.dialects.")}
    assert {"sqlite"} == {"sqlite", "mysql", "postgresql"} & dialects


def test_every_public_name_is_there_and_no_other():
    import queuepool

    assert {"context"} == {name for name in queuepool.__all__ if not callable(getattr(queuepool, name))}
    assert set(queuepool.__all__) <= set(dir(queuepool))
    with pytest.raises(AttributeError, match="module 'queuepool' has no attribute 'no_such'"):
        _ = queuepool.no_such


@pytest.mark.thorough("what a module takes to import is held by the tests above")
def test_the_tools_for_tests_load_what_they_need_when_they_are_used():
    assert {"testing"} == packages_of(loaded_by("import queuepool.testing.plugin"))
    assert not LIBRARIES & loaded_by("from queuepool.testing import as_current\nwith as_current(): ...")
