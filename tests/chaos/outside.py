"""What the harness saw from outside: processes, files, secrets, sizes, growth (I9, I12, I13, I16)."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

from tests.chaos.ledger import Event

if TYPE_CHECKING:
    from tests.chaos.checker import Findings

_RULES = {
    "orphan": "I9 orphan", "leftover": "I9 file left behind", "secret": "I16 secret", "pool_died": "the pool died",
    "bad_stop": "I9 did not stop",
}  # fmt: skip
#: growth that is no accident: over the whole run, and beyond half of what there was
_MOST_GROWTH = {"fds": 10, "rss": 20_000, "clients": 20}
_SAMPLES = 8


class Outside:
    """Most of it is a violation as it stands."""

    EVENTS = (*_RULES, "size", "sample", "kill", "nemesis", "idle", "start")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._samples: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)

    def read(self, event: Event) -> None:
        what = event["f"]
        if what in _RULES:
            facts = " ".join(f"{name}={value}" for name, value in event.items() if name not in ("t", "f"))
            self._findings.violated(_RULES[what], facts)
        else:
            getattr(self, f"_{what}")(event)

    def _size(self, event: Event) -> None:
        self._findings.count("pools seen whole")
        # In a rolling restart a worker has an elder beside it for a moment.
        if not event["want"] <= event["n"] <= 2 * event["want"]:
            what = f"{event['pool']}: {event['n']} of {event['want']} workers, {event.get('after', 2.0):g} s after"
            self._findings.violated("I12 size", what)

    def _sample(self, event: Event) -> None:
        # The clients are the server's, whoever asks; the rest is one process's.
        for what, whose in (("fds", event["pid"]), ("rss", event["pid"]), ("clients", 0)):
            self._samples[what, whose].append((event["t"] / 1e9, event[what]))

    def _idle(self, event: Event) -> None:
        if event["n"] > event["most"] * event["seconds"]:
            what = f"{event['n']} commands in {event['seconds']:g} s, at most {event['most']} a second are needed"
            self._findings.violated("I14 busy with nothing to do", what)

    def _kill(self, event: Event) -> None:
        if event["why"] not in ("stop", "cont"):
            self._findings.count("kills")
        self._findings.count(f"fault: {event['why']}")

    def _nemesis(self, event: Event) -> None:
        self._findings.count(f"nemesis: {event['name']}", event["on"])

    def _start(self, event: Event) -> None:
        if event["a"] == 1 and "m" in event:
            self._findings.count(f"mode: {event['m']}")

    def rule(self) -> None:
        for (what, whose), samples in self._samples.items():
            if len(samples) < _SAMPLES:
                continue
            grown = slope(samples) * (samples[-1][0] - samples[0][0])
            if grown > _MOST_GROWTH[what] and grown > median(value for _, value in samples) / 2:
                self._findings.violated("I13 growth", f"{what} of {whose or 'the server'}: {grown:+.0f} in the run")


def slope(samples: list[tuple[float, float]]) -> float:
    """Theil-Sen: the median of the slopes between all pairs; a few outliers do not move it."""
    thin = samples[:: max(1, len(samples) // 200)]
    return median(
        (after - before) / (end - begin) for (begin, before), (end, after) in combinations(thin, 2) if end > begin
    )
