"""How far a running job is, as one number on the board."""

from __future__ import annotations

#: stands for a progress of 0, since 0.0 is unknown
SAYS_0 = 2.0


def fraction_of(said: float) -> float | None:
    """The progress that the number says, from 0 to 1; ``None`` if it says nothing, or what no worker has written."""
    return 0.0 if said == SAYS_0 else said if 0.0 < said <= 1.0 else None
