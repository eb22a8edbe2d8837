"""How figures are said, and how many are taken."""

from __future__ import annotations

import statistics
import sys

from tests.bench.rig import percentile

QUICK = "--quick" in sys.argv[1:]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def spread(what: str, seconds: list[float]) -> None:
    p50, p99, most = (1000 * percentile(seconds, share) for share in (0.5, 0.99, 1.0))
    say(f"{what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {most:.1f} ms, n={len(seconds)}")


def rates(what: str, figures: list[float]) -> None:
    """Jobs a second, with their range."""
    say(f"{what}: {statistics.median(figures):,.0f} jobs/s ({min(figures):,.0f} to {max(figures):,.0f})")


def ratios(what: str, ours: list[float], theirs: list[float]) -> None:
    """Pair by pair: the machine may have been busier with one pair than with another."""
    each = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    say(f"  {what}: median {statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})")
