"""Counts jobs by what they are."""

from __future__ import annotations

from collections import Counter

from queuepool.search.found import FoundJob

#: different values that are counted, all others as one
_MOST_VALUES = 10_000
_OTHERS = "(others)"


class Facets:
    """How many jobs there are, by one of their properties: see ``FoundJob.facets``. Without one, how many there are."""

    def __init__(self, by: str) -> None:
        self.by = by
        self.found = Counter[str]()

    def add(self, job: FoundJob) -> None:
        """Count one job."""
        for value in job.facets(self.by) if self.by else [""]:
            known = len(self.found) < _MOST_VALUES or value in self.found
            self.found[value if known else _OTHERS] += 1
