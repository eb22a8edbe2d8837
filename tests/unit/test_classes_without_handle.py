"""A ``Job`` class without ``handle`` is the base of others: where it is taken for a job, it is said what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuepool import Job
from queuepool.errors import BootFailure, ConfigError, UnknownJob
from queuepool.jobs.registry import REGISTRY, unregistered
from queuepool.worker import boot
from tests.support.samples import fresh


class Base(Job):
    to: str


class Named(Job, name=fresh()):
    to: str


BASE = f"{__name__}.Base"


@pytest.mark.parametrize(("kind", "name"), [(Base, BASE), (Named, Named.job_name)])
def test_a_dispatch_says_it_of_the_job_and_of_no_decorator(kind, name):
    for dispatch in (lambda: kind("a").dispatch(), lambda: kind.bulk([kind("a")])):
        with pytest.raises(ConfigError) as refused:
            dispatch()
        assert f"{name} has no handle()" == str(refused.value)


def test_a_job_of_its_name_is_unknown_for_that_reason():
    assert BASE not in REGISTRY.names()
    with pytest.raises(UnknownJob) as unknown:
        REGISTRY.find(BASE)
    assert f"{BASE} has no handle()" == str(unknown.value)

    [(_, words)] = unregistered(REGISTRY, {"nightly": BASE})
    assert words == f"its job {BASE} has no handle(): each run will fail in workers with these modules"


def test_a_job_that_takes_the_name_of_its_base_is_known():
    class Own(Named, name=Named.job_name):
        def handle(self) -> None: ...

    assert REGISTRY.find(Named.job_name).target is Own


def test_modules_that_have_nothing_else_register_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(REGISTRY, "_handlers", {})
    monkeypatch.setattr(REGISTRY, "without_handle", set())
    (tmp_path / "no_handles.py").write_text("from queuepool import Job\nclass A(Job):\n    x: int\n")

    with pytest.raises(BootFailure) as failure:
        boot.import_jobs(["no_handles"], [])
    assert f"no job is registered by no_handles ({tmp_path}/no_handles.py): no_handles.A has no handle()" == str(
        failure.value
    )
