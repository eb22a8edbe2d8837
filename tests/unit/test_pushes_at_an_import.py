"""A job that a module dispatches when it is imported is pushed by every worker that starts: it is warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuepool.worker import boot
from tests.support.samples import fresh

MODULE = """
from queuepool import connect, job
from queuepool.jobs.connecting import default_queue

@job({name!r})
def run() -> None: ...

{last}
"""
WORDS = "was dispatched during an import: every start of a worker or template would push it again"


@pytest.fixture
def imported(queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.syspath_prepend(tmp_path)

    def imported(last: str) -> tuple[str, list[str]]:
        name, module = f"shop.{fresh()}", fresh().replace("-", "_").replace(".", "_")
        (tmp_path / f"{module}.py").write_text(MODULE.format(name=name, last=last))
        boot.import_modules([module])
        return name, [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]

    return imported


@pytest.mark.parametrize(
    "last",
    [
        "run.dispatch()",
        "run.dispatch(); run.dispatch(); run.bulk([[], []])",
        "default_queue().push(run.name)",
        "import asyncio; asyncio.run(run.adispatch())",
    ],
)
def test_one_warning_names_the_job_and_says_what_to_do(imported, last):
    name, warnings = imported(last)

    assert 1 == len(warnings)
    assert warnings[0].startswith(f"{name} {WORDS}")
    assert warnings[0].endswith("under if __name__ == '__main__'")


def test_what_is_dispatched_after_the_import_is_no_matter(imported, queue):
    name, warnings = imported('if __name__ == "__main__":\n    run.dispatch()')
    queue.push(name)

    assert [] == warnings == imported("")[1]


def test_after_an_import_that_failed_pushes_are_no_matter_either(imported, queue, caplog):
    with pytest.raises(boot.BootFailure):
        imported("raise KeyError(1)")
    queue.push("elsewhere.job")

    assert not caplog.records
