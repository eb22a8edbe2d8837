"""What is shown of attempts that have ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from queuepool.board.status import iso
from queuepool.search.ended import EndedAttempt

#: why nothing is known of an attempt
GAP = "no record: a lost host ran it, or another program, or it is longer ago than records are kept"
#: the last number among which gaps are shown: a payload may hold any
_MOST = 1000


def facts_of(attempt: EndedAttempt) -> dict[str, Any]:
    """For JSON."""
    return {
        "attempt": attempt.attempts,
        "outcome": attempt.outcome or None,
        "then": attempt.then or None,
        "began": moment(attempt.began),
        "ended": moment(attempt.ended),
        "seconds": attempt.seconds,
        "host": attempt.host or None,
        "pool": attempt.pool or None,
        "worker": attempt.worker,
        "pid": attempt.pid,
        "generation": attempt.generation,
        "pool_since": moment(attempt.pool_since),
        "error": attempt.error or None,
        "lease_lost": attempt.is_lost,
    }


def lines_of(attempts: Sequence[EndedAttempt], begun: int | None) -> Iterator[str]:
    """A line for each attempt, for people, and for each of which nothing is known. ``begun``: how many there were."""
    for number, attempt in numbered(attempts, begun):
        yield f"attempt {number or '?'}: {_words_of(attempt) if attempt else GAP}"


def numbered(attempts: Sequence[EndedAttempt], begun: int | None) -> list[tuple[int, EndedAttempt | None]]:
    """The attempts with their numbers, 0 if that is not known; ``None`` for each of which nothing is known."""
    numbers = {one.attempts for one in attempts}
    last = max([begun or 0, *(number for number in numbers if number)])
    found: list[tuple[int, EndedAttempt | None]] = [(one.attempts or 0, one) for one in attempts]
    if attempts:
        found += [(number, None) for number in range(1, min(last, _MOST) + 1) if number not in numbers]
    return sorted(found, key=lambda one: one[0])


def _words_of(attempt: EndedAttempt) -> str:
    ran = f"began {moment(attempt.began)}, ended" if attempt.began else "ended"
    took = "" if attempt.seconds is None else f" after {attempt.seconds:.3g} s"
    place = f"host {attempt.host}, pool {attempt.pool}, worker {attempt.worker}, pid {attempt.pid}"
    code = f", generation {attempt.generation} since {moment(attempt.pool_since)}" if attempt.pool_since else ""
    then = f", then {attempt.then}" if attempt.then else ""
    lost = ", but its lease was lost: nothing came of it" if attempt.is_lost and attempt.outcome != "lost" else ""
    error = f": {attempt.error}" if attempt.error else ""
    return f"{attempt.outcome}{then}{lost}, {ran} {moment(attempt.ended)}{took}, {place}{code}{error}"


def moment(at: float | None) -> str | None:
    """In ISO format; ``None`` for what is none, which a damaged record may hold."""
    with suppress(ValueError, OverflowError, OSError):
        return None if at is None else iso(at)
    return None
