"""What stands in ``available_at`` while a worker of ours has a job reserved: who it is, and in which attempt.

Laravel does not look there then, and leaves it as it is when it takes over a reservation that has ended: the attempt
tells its reservations from ours.
"""

from __future__ import annotations

from typing import Any

from queuepool.payload.lease import Lease, Row

#: below every time that a queue has seen, and within a signed column of four bytes
_MARKS = 2**30
#: as many attempts are told apart
_ATTEMPTS = 4
TAGS = _MARKS // _ATTEMPTS


def mark_of(tag: Any, attempts: Any) -> Any:
    """Of a reservation: a number, or the expression for it."""
    return tag * _ATTEMPTS + attempts % _ATTEMPTS


def row_of(lease: Lease) -> Row:
    assert lease.row, "a lease of another store"
    return lease.row


def marked(lease: Lease) -> tuple[int, int, int]:
    """Id, attempts and mark, as they stand in the table."""
    row = row_of(lease)
    return row.id, row.attempts, mark_of(lease.tag, row.attempts)
