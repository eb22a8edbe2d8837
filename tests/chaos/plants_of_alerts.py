"""Mutants of alerts: one that is raised or noticed again. Stewards look often enough for a short run to see it."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, Plant

#: no fault: with these a run of seconds sees as many looks as one of minutes
OFTEN = (
    ("alerts/watch.py", "_PERIOD, _TICK = 10.0, 1.0", "_PERIOD, _TICK = 0.2, 0.1"),
    ("steward/measure.py", "_PERIOD, _SHARE = 5.0, 20.0", "_PERIOD, _SHARE = 0.2, 1.0"),
)
#: two pools, so two stewards
_TWO = replace(PEACE, workers=1, remote=1, preload=False, rate=20.0, backlog=5, bulk=5, alerts=True)

OF_ALERTS = {
    "turn to send a notice taken by every pool": Plant(
        "I26 noticed twice",
        (*OFTEN, ("stores/redis/values.py", '"SET", key, owner, "NX", "PX"', '"SET", key, owner, "PX"')),
        _TWO,
    ),
    "steward that does not know what was raised before it": Plant(
        "I26 raised twice",
        (*OFTEN, ("alerts/watch.py", "AlertStates(open_alerts.read(board))", "AlertStates()")),
        replace(_TWO, remote=0, only=("kill_steward",), seconds=5.0, phase=(1.2, 1.2)),  # with a calm after each
    ),
}
