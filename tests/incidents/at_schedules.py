"""Incidents of schedules: one that does not push, and one whose job fails."""

from __future__ import annotations

from collections.abc import Iterator

from tests.incidents.incident import Answer, Incident, answer
from tests.incidents.scene import Scene


def _does_not_push(scene: Scene) -> Iterator[Answer]:
    scene.does("queuepool schedule pause close_books", scene.web2)
    yield answer(scene, "queuepool schedule show close_books", "state: paused", "@web2", "note: it is paused")
    yield answer(scene, "queuepool schedule resume close_books", "schedule close_books: continues")


def _fails(scene: Scene) -> Iterator[Answer]:
    reports = [host.folder / "report.csv" for host in (scene.web1, scene.web2)]
    for report in reports:
        report.unlink()
    how = ("ended_state: failed", "FileNotFoundError")
    scene.waits_for("queuepool schedule show report", *how)
    yield answer(scene, "queuepool schedule show report", "state: failing", *how)
    for report in reports:
        report.touch()


DOES_NOT_PUSH = Incident(
    "A schedule did not run",
    "The books were not closed last night.",
    _does_not_push,
    "Ask who has paused it; `queuepool journal` has the line. `queuepool schedule run close_books` runs it now. "
    "`queuepool schedule list` shows the state of all schedules.",
)
FAILS = Incident(
    "A schedule ran, and its job failed",
    "There is no report this morning.",
    _fails,
    "Mend the cause, then `queuepool schedule run report`. The failed runs are among the failed jobs, too.",
)
