"""What each program has in memory: a module that defines jobs, a push, the verbs that are asked often."""

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


def test_the_package_alone_loads_nothing_of_itself():
    assert {"queuepool"} == {name for name in loaded_by("import queuepool") if name.startswith("queuepool")}


def test_a_module_that_defines_jobs_needs_no_store_no_client_and_no_events():
    loaded = loaded_by("from queuepool import Job, current, job\njob(print)\nclass A(Job):\n    def handle(self): ...")

    assert not LIBRARIES & loaded
    assert (
        not {"queuepool.jobs.client", "queuepool.config.loader", "queuepool.events", "queuepool.payload.envelope"}
        & loaded
    )


def test_every_public_name_is_there_and_no_other():
    import queuepool

    assert all(callable(getattr(queuepool, name)) for name in queuepool.__all__)
    assert set(queuepool.__all__) <= set(dir(queuepool))
    with pytest.raises(AttributeError, match="module 'queuepool' has no attribute 'jobs'"):
        _ = queuepool.jobs
