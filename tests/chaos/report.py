"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from tests.chaos import lanes, places
from tests.chaos.checker import INVALID, VALID, Findings
from tests.chaos.soft_timeouts import LATE
from tests.chaos.times import BACK, DELAYED, KILL, RECOVERY, WHOLE

_SHOWN = 5
_MOVED, _KINDS = ("jobs", "starts", "finishes", "kills"), ("fault: ", "nemesis: ", "mode: ")
_WORDS = {VALID: "valid", INVALID: "INVALID"}


def table(findings: Findings) -> str:
    return "\n".join(_lines(findings)) + "\n"


def brief(findings: Findings) -> str:
    """One line: how much happened in the run, as one without jobs or faults shows nothing, and what is against it."""
    counts = [f"{what} {findings.counts.get(what, 0)}" for what in _MOVED]
    counts += [f"{what} {count}" for what, count in sorted(findings.counts.items()) if what.startswith(_KINDS)]
    broken = sorted({*findings.violations, *findings.doubted}) or ["nothing"]
    return "; ".join([", ".join(counts), f"found {', '.join(broken)}", *findings.unknown])


def _lines(findings: Findings) -> Iterator[str]:
    counts, rules = findings.counts, findings.violations
    for what in _MOVED:
        yield _row(what, counts.get(what, 0))
    for kind in _KINDS:
        yield from _wrapped(kind, {what.removeprefix(kind): counts[what] for what in counts if what.startswith(kind)})
    yield _row("lost", len(rules.get("I1 lost", [])))
    yield _row("twice", counts.get("twice", 0))
    for what in sorted(counts):
        if what.startswith(("twice: ", "attempts", "at rest: ")):
            yield _row(f"  {what}", counts[what])
            yield from (f"      {case}" for case in findings.examples.get(what, [])[:2])
    yield _row("overlaps", len(rules.get("I4 overlap", [])))
    for what in (
        "starts with limits",
        "numbers set by hand",
        "effects",
        "effects again",
        "released",
        "failed",
        "given back",
        "settlements refused",
        "outcomes",
        "soft timeouts",
        "spans",
        "spans of killed attempts",
        "starts beside others",
        "most at once in a worker",
        "neighbours of a culprit",
        "neighbours of a kill",
        "neighbours of whom nothing proves",
        "suspicions",
        "starts of suspects",
        "failed as the only suspect",
        "orders to cancel",
        "cancelled",
        "jobs seen in order",
        "pools seen whole",
        "records of attempts",
        "times slower than alone, at worst",
    ):
        yield _row(what, counts.get(what, 0))
    for what in sorted(counts):
        if what.startswith(("stored: ", "states: ", "alerts ", "notices: ")):
            yield _row(what, counts[what])
    yield from _spreads(findings)
    for rule, cases in sorted(rules.items()):
        yield f"VIOLATED  {rule}: {len(cases)}"
        yield from (f"          {case}" for case in cases[:_SHOWN])
    yield from (f"UNKNOWN   {what}" for what in findings.unknown)
    yield f"{_WORDS.get(findings.code, 'UNKNOWN')}, exit code {findings.code}"


def _spreads(findings: Findings) -> Iterator[str]:
    for what in (RECOVERY, KILL, lanes.LATE, LATE, DELAYED, BACK, WHOLE, places.AT_REST):
        if values := sorted(findings.spreads.get(what, [])):
            p50, p99, most = (
                1000 * values[min(len(values) - 1, int(share * len(values)))] for share in (0.5, 0.99, 1.0)
            )
            yield f"{what:<40} p50 {p50:.1f} ms  p99 {p99:.1f} ms  max {most:.1f} ms  n={len(values)}"


def _wrapped(kind: str, counts: dict[str, int]) -> Iterator[str]:
    words = ", ".join(f"{name} {counts[name]}" for name in sorted(counts))
    return iter(wrap(words, 110, initial_indent=f"  {kind}", subsequent_indent="      "))


def _row(what: str, number: int) -> str:
    return f"{what:<60} {number:>10,}"
