"""Mutants of schedules: a time that is pushed twice, and one that is never pushed again."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, Plant

_FIRE = "stores/redis/lua/fire.lua"
#: two pools, so two stewards
_TWO = replace(PEACE, workers=1, remote=1, preload=False, rate=40.0, backlog=5, bulk=5, seconds=4.0)

OF_SCHEDULES = {
    "due time not compared with the mark": Plant(
        "I24 pushed twice",
        ((_FIRE, "if mark.settled >= due then return {'settled', text} end", ""),),
        _TWO,
    ),
    "mark set beyond the due time": Plant(
        "I24 no longer pushed",
        ((_FIRE, "mark.settled = due\n", "mark.settled = due + 3600\n"),),
        replace(_TWO, seconds=9.0),  # the first push counts for some seconds
    ),
}
