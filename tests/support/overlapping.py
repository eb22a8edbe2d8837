"""Which jobs ran at the same time as themselves, and for how long, by what they noted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.support.pools import Site


class Overlap(NamedTuple):
    """A job that began again while it ran; the times are in Unix seconds."""

    job_id: str
    began: float
    again: float
    #: until when both are known to have run: a job of the mode ``beat`` notes all the time that it does
    until: float

    @property
    def seconds(self) -> float:
        return self.until - self.again


def overlapping(site: Site) -> Iterator[Overlap]:
    """Each run beside the one that began next."""
    runs: dict[str, dict[tuple[int, int], list[float]]] = {}
    for note in site.trail():
        if note["event"] in ("start", "beat", "end"):
            of_job = runs.setdefault(note["id"], {})
            of_job.setdefault((note["pid"], note["attempt"]), []).append(note["at"])
    for job_id, of_job in runs.items():
        in_order = sorted((min(times), max(times)) for times in of_job.values())
        for (began, last), (again, ended) in pairwise(in_order):
            if again < last:
                yield Overlap(job_id, began, again, min(last, ended))
