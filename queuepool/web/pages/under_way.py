"""What was begun: how far it is, and what came of it."""

from __future__ import annotations

from typing import Any

from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.guard import Refusal

Facts = dict[str, Any]


def errand(desk: Desk, asked: Asked) -> Facts:
    """What is done with many jobs."""
    return {"errand": desk.errands.get(asked.parts["id"]).to_json()}


def submission(desk: Desk, asked: Asked) -> Facts:
    """An action that takes longer than a browser waits."""
    found = desk.submissions.get(asked.parts["id"])
    if found is None:
        raise Refusal(404, "there is no such action, or it was long ago")
    outcome = found.outcome
    if outcome is None:
        return {"state": "running", "words": "still under way", "back": None}
    return {"state": "done" if outcome.is_good else "failed", "words": outcome.words, "back": outcome.back}
