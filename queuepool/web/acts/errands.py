"""Watch what is done with many jobs, and stop it."""

from __future__ import annotations

from typing import Any

from queuepool.web.acts.acted import Acted
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk


def errand(desk: Desk, asked: Asked) -> dict[str, Any]:
    """How far it is."""
    return {"errand": desk.errands.known(asked.parts["id"]).to_json()}


def stop(desk: Desk, asked: Asked) -> Acted:
    """Do no more after the batch under way; what was done stays done."""
    found = desk.errands.known(asked.parts["id"])
    found.stop()
    return Acted(f"stopping; {found.words}", f"/errands/{found.id}", facts=found.to_json())
