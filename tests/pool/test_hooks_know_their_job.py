"""``current()`` in the hooks of a job is that job."""

from __future__ import annotations

MODULE = """
from queuepool import current, job
from tests.support.poolapp import note

@job("odd")
def odd(number: int) -> None:
    if number % 2:
        raise ValueError(number)

@odd.after_succeeded
def succeeded(number: int) -> None:
    note(event="hook", id=current().id, attempts=current().attempts)

@odd.after_failed
def failed(error: BaseException, number: int) -> None:
    note(event="hook", id=current().id, attempts=current().attempts)
"""


def test_current_is_the_job_in_both_hooks(site):
    (site.path / "odd.py").write_text(MODULE)
    ids = [site.queue.push("odd", {"number": number}) for number in range(2)]
    site.work("--modules", "odd", "--tries", "2")

    assert [(ids[0], 1), (ids[1], 2)] == [(note["id"], note["attempts"]) for note in site.trail(event="hook")]
