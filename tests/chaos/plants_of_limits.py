"""Mutants of limits: of what a job takes when it starts, of what its end gives back, and of who is next."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import QUIET, Plant

_LIMITS = replace(QUIET, limits=12.0, steps=0.0, refused=0.0, workers=6, seconds=4.0, drain=6.0)
_KILLED = replace(_LIMITS, only=("kill_workers",), kill_every=(0.1, 0.3))
_IN_TABLES = replace(_KILLED, limits=6.0, kill_every=(0.5, 1.0))
_LUA = "stores/redis/lua"
_SQL = "stores/sql"
_SEEN_AT_ONCE = "            return _seen(one, start, job, holders, state, len(locked))\n"
_FREED = """    redis.call('zrem', key_of(limits, 'held', key), holder)
    limits.freed[#limits.freed + 1] = key
"""

OF_LIMITS = {
    "place that a job takes and nobody counts": Plant(
        "L1 above the limit",
        ((f"{_LUA}/enter.lua", "    redis.call('zadd', held, score, holder)\n", ""),),
        _LIMITS,
    ),
    "place that is handed to two": Plant(
        "L1 above the limit",
        (
            (f"{_LUA}/include/limits.lua", "      free = free - 1\n", ""),
            (f"{_LUA}/include/may_start.lua", "    return free >= 0 --", "    return true --"),
        ),
        _LIMITS,
    ),
    "places that are not renewed with their leases": Plant(
        "L1 above the limit",
        (("stores/redis/limits.py", "        if not self.in_use:\n", "        if True:\n"),),
        replace(_LIMITS, long=3.0, retry_after=1.0),
    ),
    "start that a rate counts for a tenth of its time": Plant(
        "L1 a rate exceeded",
        (
            (
                f"{_LUA}/include/limits.lua",
                "limits.now - (rule and rule.per or 0)",
                "limits.now - (rule and rule.per / 10 or 0)",
            ),
        ),
        _LIMITS,
    ),
    "place that the death of its worker does not give back": Plant(
        "L2 a place without a lease",
        (("steward/death.py", "if self.board.header.limits_at:", "if False:"),),
        _KILLED,
    ),
    "place that is given back and handed to nobody": Plant(
        "L2 a place at rest while a job waits",
        ((f"{_LUA}/include/limits.lua", _FREED, _FREED.splitlines(keepends=True)[0]),),
        _LIMITS,
    ),
    "steward that hands on nothing": Plant(
        "L2 a place at rest while a job waits",
        (("steward/limits.py", "due = self._limits.sweep()", "due = None"),),
        _LIMITS,
    ),
    "parked job that is only in a line": Plant(
        "I1 lost",
        ((f"{_LUA}/include/limits.lua", "  redis.call('hset', limits.own .. 'parked:' .. queue, number, text)\n", ""),),
        _LIMITS,
    ),
    "parked job that nobody hands a place": Plant(
        "L3 parked for ever",
        (
            (
                f"{_LUA}/include/limits.lua",
                "queue, number, text)\n  line_up(limits, refused, queue, number)",
                "queue, number, text)",
            ),
        ),
        replace(_LIMITS, retry_after=1.0, drain=10.0),
    ),
    "try that is lost by waiting": Plant(
        "I6 attempts",
        ((f"{_LUA}/enter.lua", "asked, unbumped(ARGV[1]))", "asked, ARGV[1])"),),
        _LIMITS,
    ),
    "rows of limits that are read without a lock": Plant(
        "L1 above the limit",
        (
            (
                f"{_SQL}/entering.py",
                '"at_keys")).order_by(limits.key).with_for_update()',
                '"at_keys")).order_by(limits.key)',
            ),
            # two must read between the same writes: they take their time
            (f"{_SQL}/entering.py", _SEEN_AT_ONCE, f"            __import__('time').sleep(0.05)\n{_SEEN_AT_ONCE}"),
        ),
        replace(_IN_TABLES, store="postgres", limits=12.0, kill_every=(5.0, 5.0), seconds=6.0),  # jobs that meet
    ),
    "row of a place that stays behind its job": Plant(
        "L2 a place without a lease",
        (
            (
                f"{_SQL}/places.py",
                "        if left:\n            connection.execute(statements.end, these)\n",
                "",
            ),
        ),
        replace(_IN_TABLES, store="sqlite"),
    ),
    "place in a table that is handed to nobody": Plant(
        "L2 a place at rest while a job waits",
        (
            (
                f"{_SQL}/places.py",
                "            if is_waited_for:\n                self._hand_on(connection, key, now)\n",
                "            if is_waited_for:\n                pass\n",
            ),
        ),
        replace(_IN_TABLES, store="sqlite"),
    ),
    "place in a table that is handed to two": Plant(
        "L1 above the limit",
        (
            (f"{_SQL}/places.py", "            return free >= 0  # its own", "            return True  # its own"),
            (
                f"{_SQL}/places.py",
                "if was_copied else free - 1",
                "if was_copied else free",
            ),
        ),
        replace(_IN_TABLES, store="sqlite"),
    ),
    "parked row that comes back as none": Plant(
        "I1 lost",
        ((f"{_SQL}/statements.py", "where(still_in(jobs, PARKED)).values", "where(jobs.c.id < 0).values"),),
        replace(_IN_TABLES, store="sqlite"),
    ),
}
