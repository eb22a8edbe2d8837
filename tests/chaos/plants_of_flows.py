"""Mutants of what the end of a member of a flow does to those that follow it."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import QUIET, Plant

_FLOWS = replace(QUIET, graphs=20.0, steps=0.0, refused=0.0, seconds=4.0, drain=6.0)
_FLOW = "stores/redis/lua/include/flow.lua"

OF_FLOWS = {
    "member that starts with the first that it follows": Plant(
        "I35 a member began too early",
        ((_FLOW, "if redis.call('hincrby', flow.facts, 'l' .. n, -several) == 0 then", "if true then"),),
        _FLOWS,
    ),
    "member that is settled as any other job": Plant(
        "I1 lost",
        (
            (
                "settlement/flows.py",
                'how: How = "o" if run.is_left_out else "c" if run.cancelled and not run.is_skipped else "d"',
                "return None",
            ),
            (  # those whose end waits for the next reserve
                "worker/flows.py",
                'return lease._replace(member=MemberEnd(job.flow.id, job.flow.member.number, "d"))',
                "return lease",
            ),
        ),
        _FLOWS,
    ),
}
