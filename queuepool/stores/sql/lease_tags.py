"""The mark in ``available_at`` while one of our workers holds a lease: the worker's tag and the attempt.

Laravel does not read that column then, and does not change it when it takes over an expired lease: the attempt
distinguishes Laravel's lease from ours.
"""

from __future__ import annotations

from typing import Any

from queuepool.payload.lease import Lease, Row

#: below every time that a queue has held, and within a signed column of four bytes
_MARKS = 2**30
#: how many successive attempts are distinguished
_ATTEMPTS = 4
TAGS = _MARKS // _ATTEMPTS


def mark_of(tag: Any, attempts: Any) -> Any:
    """The mark of a lease, as a number or as an SQL expression."""
    return tag * _ATTEMPTS + attempts % _ATTEMPTS


def row_of(lease: Lease) -> Row:
    """The row of a lease on a job in a table."""
    assert lease.row, "a lease of another store"
    return lease.row


def marked(lease: Lease) -> tuple[int, int, int]:
    """Id, attempts and mark, as in the table."""
    row = row_of(lease)
    return row.id, row.attempts, mark_of(lease.tag, row.attempts)
