"""What a pool's number of workers follows, and why there are not more of them now, nor fewer: from its board."""

from __future__ import annotations

import time

from queuepool.board.fields import Header
from queuepool.board.overview import ScalingRow
from queuepool.board.record import as_count
from queuepool.board.requests import WISH_LASTS
from queuepool.board.states import Hold, State

#: what else than the need the number of workers follows, in one word
HELD = ("order", "boot", "memory", "silence", "max_workers")
#: the same in words, of those that are not about numbers
_REASONS = {
    "order": "the number is ordered, until queuepool scale auto or the end of its time",
    "boot": "workers fail to boot",
    "memory": "memory_reserve would not be left",
    "silence": "it is not known what waits",
}
_PAUSED = "no worker may take jobs"


def scaling_of(header: Header, until: str | None) -> ScalingRow | None:
    """What the number of workers follows; ``None`` if that is an order without an end, or the configuration.

    ``until``: when an order ends, in ISO 8601.
    """
    scales = as_count(header.most) > 0
    if not (scales or (header.pinned and until is not None)):
        return None
    is_known = scales and header.wish > 0 and header.wish_at > time.monotonic() - WISH_LASTS
    needed = as_count(header.needed) if is_known else 0
    held = held_by(header, needed)
    return ScalingRow(
        fewest=as_count(header.fewest),
        most=as_count(header.most),
        wish=as_count(header.wish) if is_known else None,
        needed=needed or None,
        pinned=bool(header.pinned),
        until=until,
        why="by order" if header.pinned else Hold(header.held).reason or header.wish_why,
        held=held or None,
        not_more=_not_more(header, needed, held),
        not_fewer=_not_fewer(header, needed, held),
    )


def held_by(header: Header, needed: int) -> str:
    """What keeps the number from following the ``needed`` one, one of ``HELD``; empty if nothing does."""
    if header.pinned:
        return "order"
    if hold := Hold(header.held):
        return hold.name.lower()
    is_at_most = as_count(header.target) >= as_count(header.most) > 0
    return "max_workers" if is_at_most and needed > as_count(header.most) else ""


def _not_more(header: Header, needed: int, held: str) -> str:
    """Why there are not more workers."""
    if held == "max_workers":
        return f"max_workers, where {needed} are needed"
    if held or not needed:
        return _REASONS.get(held) or _unknown(header)
    if needed > (target := as_count(header.target)):
        comes = as_count(header.wish) > target
        return f"{needed} are needed, {'and come in steps' if comes else 'but more would find no jobs at this moment'}"
    return f"{needed} {_are(needed)} enough"


def _not_fewer(header: Header, needed: int, held: str) -> str:
    """Why there are not fewer workers."""
    target, lately = as_count(header.target), as_count(header.lately)
    if held in ("order", "silence"):
        return _REASONS[held]
    if target <= as_count(header.fewest):
        return "min_workers"
    if not needed:
        return _unknown(header)
    if needed >= target:
        return f"{needed} {_are(needed)} needed"
    if not lately:
        return "what was needed before is not known yet"
    so_many = f"{max(lately, needed)} were needed within scale_down_after"
    return so_many if lately >= target else f"{so_many}, which is hardly less"


def _unknown(header: Header) -> str:
    """Why nothing is known of what is needed."""
    is_paused = State(header.state) is State.PAUSED or bool(header.down) or header.wish_why == "paused"
    return _PAUSED if is_paused else _REASONS["silence"]


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
