"""Stop what is done with many jobs."""

from __future__ import annotations

from queuepool.web.acts.acted import Acted
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk


def stop(desk: Desk, asked: Asked) -> Acted:
    """Do no more after the batch under way; what was done stays done. Any operator may, whoever began it."""
    found = desk.errands.get(asked.parts["id"])
    found.stop()
    return Acted(f"stopping; {found.words}", f"/errands/{found.id}", facts=found.to_json())
