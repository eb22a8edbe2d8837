"""Faults that are written into the scripts of limits: random histories must find each, by the law that it breaks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.plant import Plant
from tests.chaos.world import ROOT
from tests.support.samples import fresh

_LIMITS, _MAY_START = "stores/redis/lua/include/limits.lua", "stores/redis/lua/include/may_start.lua"
_ENTER, _SWEEP = "stores/redis/lua/enter.lua", "stores/redis/lua/sweep_limits.lua"

PLANTS = {
    "places are not looked at": Plant(
        "one too many|too early", ((_MAY_START, "return free == 0 and stale_at(limits, key) and true", "return true"),)
    ),
    "a place is not given back": Plant(
        "at rest|stuck", ((_LIMITS, "redis.call('zrem', key_of(limits, 'held', key), holder)", ""),)
    ),
    "a place is not handed on": Plant(
        "at rest",
        (
            (
                _LIMITS,
                "key)) == 1 then hand_on(limits, key) end",
                "key)) == 1 then free_places(limits, key) end",
            ),
        ),
    ),
    "kept places are not counted": Plant(
        "one too many|too early",
        (
            (
                _LIMITS,
                "local free = rule.number - redis.call('zcard', held) - kept\n",
                "local free = rule.number - redis.call('zcard', held)\n",
            ),
        ),
    ),
    "a kept place is never passed on": Plant(
        "stuck|at rest",
        (
            (_SWEEP, "return type(place) == 'number'", "return true"),
            (_MAY_START, "and stale_at(limits, key) and true", "and false"),
        ),
    ),
    "waiting uses up a try": Plant("lost a try", ((_ENTER, "unbumped(ARGV[1])", "ARGV[1]"),)),
    "a start is counted while its job runs": Plant("too early", ((_ENTER, "if limit.per > 0 then", "if false then"),)),
    "a lowered number is not asked again": Plant(
        "one too many|too early", ((_MAY_START, "return free >= 0", "return true"),)
    ),
    "a start counts for ever": Plant("stuck", ((_LIMITS, "limits.now - (rule and rule.per or 0)", "0"),)),
    "a parked job stays reserved": Plant("jobs are there", ((_ENTER, "  redis.call('zrem', KEYS[1], ARGV[1])\n", ""),)),
}


def found(folder: Path, url: str, seeds: int) -> str:
    """What the histories find with the package of this folder."""
    env = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"}
    command = [sys.executable, "-P", "-m", "tests.support.limit_laws", url, f"{fresh('limits')}:", str(seeds)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr


@pytest.mark.thorough("each is a process with many histories")
@pytest.mark.parametrize("fault", PLANTS)
def test_each_fault_is_found(fault, tmp_path, redis_url):
    plant = PLANTS[fault]
    words = found(plant.write(tmp_path), redis_url, 30)

    assert any(rule in words for rule in plant.rule.split("|")), words


def test_without_a_fault_nothing_is_found(redis_url):
    assert "" == found(ROOT, redis_url, 2)
