"""Mutants of workers that run jobs side by side: of blame, of deadlines, and of what the board shows of lanes."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, Plant

#: one pool alone, whose jobs end its workers
_LANES = replace(
    PEACE, workers=0, remote=0, preload=False, backlog=0, steps=0.0, refused=0.0, lanes=20, wide=2, beside=8.0,
    deadly=4.0, seconds=6.0, drain=10.0,
)  # fmt: skip
_UNPROVEN = replace(_LANES, lane_modes=("lane_nap", "kill_in_await"), deadly=1.0)
_KILLED = replace(
    _LANES, only=("kill_workers",), kill_every=(0.2, 0.4), deadly=0.0, lane_modes=("lane_nap",), retry_after=1.5
)
#: such as live long enough to meet three deaths of their workers
_SUSPECTED = replace(_KILLED, kill_every=(0.3, 0.5), beside=2.0, lane_modes=("lane_rest",), seconds=8.0)
_PAUSE = "__import__('time').sleep(0.05)"
#: longer than what a kill before a settlement excuses
_LONG_PAUSE = "__import__('time').sleep(0.4)"
_CHARGED = "I28 a neighbour was charged"
_ARM = "            self._arm(alarm)\n"
_WAIT_FOR_THREAD = """            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
"""

OF_LANES = {
    "neighbours charged with the death of their worker": Plant(
        _CHARGED,
        (
            (
                "steward/settle_dead.py",
                "slot.killed in ASKED or slot.has_left or (culprits and one.number in culprits.innocent)",
                "slot.killed in ASKED",
            ),
        ),
        replace(_LANES, lane_modes=("lane_nap", "exit_in_await")),
    ),
    "blame for whoever is past a deadline, though another had the processor": Plant(
        _CHARGED,
        (
            (
                "steward/culprits.py",
                "if _is_past(lane, evidence.at - evidence.grace) and (lane.told_for or 0.0) >= patience",
                "if _is_past(lane, evidence.at - evidence.grace)",
            ),
        ),
        replace(_LANES, lane_modes=("lane_nap", "block_loop")),
    ),
    "steps that do not say whose they are": Plant(
        _CHARGED,
        (
            (
                "worker/lane_tasks.py",
                "        words[ON_CPU] = self._mark\n        try:\n            return self._send(value)\n",
                "        try:\n            return self._send(value)\n",
            ),
        ),
        replace(_LANES, lane_modes=("lane_nap", "segv_in_await")),
    ),
    "blame by a grace that is not the pool's": Plant(
        _CHARGED,
        (("pool/steward_process.py", "                settings.grace,\n", "                1.0,\n"),),
        replace(_LANES, lane_modes=("lane_nap", "swallow_cancel")),
    ),
    "alarm left at the time of a job that has ended": Plant(
        "I28 interrupted by nobody",
        (("worker/deadlines.py", "        if is_first:\n            self._arm_alarm()\n", ""),),
        replace(_LANES, deadly=0.0, beside=40.0, lane_modes=("lane_nap",)),
    ),
    "no alarm, and no second line behind it": Plant(
        "I29 past its deadline",
        (
            ("worker/deadlines.py", _ARM, "            pass\n"),
            ("board/board.py", "if slot.lanes and (first := slot.lanes.deadline) and now", "if False and now"),
        ),
        replace(_LANES, lane_modes=("lane_nap", "swallow_cancel"), drain=2.0, stop=2.0),
    ),
    "as many jobs as lanes, though some are of jobs that are done": Plant(
        "I30 too many at once",
        (
            (
                "worker/lane_board.py",
                "return min(self._most - self.running, len(self._free))",
                "return len(self._free)",
            ),
        ),
        replace(_LANES, deadly=0.0, lane_modes=("lane_nap",)),
    ),
    "wait that is never over": Plant(
        "I32 a free lane beside waiting jobs",
        (
            (
                "worker/lane_loop.py",
                "                self._has_returned = True\n                self._bell.ring()\n",
                "                self._bell.ring()\n",
            ),
        ),
        replace(_LANES, deadly=0.0, lane_modes=("lane_nap",), seconds=8.0, drain=4.0),
    ),
    "lane freed before its job is deleted": Plant(
        "I5 done twice, unexplained",
        (
            (
                "worker/lane_endings.py",
                "        if away := self.away_from(self._settler.delete, [lease for _, lease in self._batch.done]):\n",
                "        done = [lease for _, lease in self._batch.done]\n        self._batch.deleted()\n"
                f"        {_LONG_PAUSE}\n        if away := self.away_from(self._settler.delete, done):\n",
            ),
            (  # most are deleted by the next reserve
                "worker/lane_worker.py",
                "        done = [lease for _, lease in batch.done]\n",
                "        done = [lease for _, lease in batch.done]\n"
                f"        if done:\n            batch.deleted()\n            {_LONG_PAUSE}\n",
            ),
        ),
        replace(_KILLED, beside=4.0),
    ),
    "reserve over before its jobs are in lanes": Plant(
        "I6 attempts",
        (
            (
                "worker/lane_board.py",
                "        taken: list[tuple[int, Lease]] = []\n",
                "        taken: list[tuple[int, Lease]] = []\n        self._slot.reserve_sent_at = 0.0\n"
                f"        {_PAUSE}\n",
            ),
        ),
        replace(_KILLED, beside=20.0),
    ),
    "suspects side by side": Plant(
        "I31 a suspect beside a suspect",
        (
            (
                "worker/lane_worker.py",
                "(self._batch.waiting_suspects if attempt.suspect_since else attempts).append(attempt)",
                "attempts.append(attempt)",
            ),
        ),
        _SUSPECTED,
    ),
    "suspects that the next worker has forgotten": Plant(
        "I31 a suspect beside a suspect",
        (
            (
                "worker/lane_runner.py",
                "        if payload.attempts > 1:\n            self._ask_for_suspicions(attempt)\n",
                "",
            ),
        ),
        _SUSPECTED,
    ),
    "suspicions that are not counted": Plant(
        "I31 never charged",
        (("steward/settle_dead.py", '._replace(tally="suspects")', '._replace(tally="")'),),
        _UNPROVEN,
    ),
    "suspects charged at once": Plant(
        "I31 charged without a proof",
        (
            (
                "steward/settle_dead.py",
                "        if culprits and one.number in culprits.suspects:\n            verdict",
                "        if False:\n            verdict",
            ),
        ),
        _UNPROVEN,
    ),
    "memory of a worker with lanes that nobody looks at": Plant(
        "I29 past its deadline",
        (("master/loop.py", "is_too_big = limit and child", "is_too_big = limit and not child.slot.lanes and child"),),
        replace(_LANES, lane_modes=("lane_nap", "hog_memory"), deadly=0.5),
    ),
    "plain function that its loop lets go at its deadline": Plant(
        "I4 overlap",
        (("worker/lane_runner.py", _WAIT_FOR_THREAD, "            await asyncio.wait([future])\n"),),
        replace(_LANES, lane_modes=("lane_nap", "hang_in_thread")),
    ),
    "tasks that outlive their job": Plant(
        "I18 a task outlived its job",
        (("worker/lane_runner.py", "        if tasks.left:\n            await self._clear(attempt, tasks)\n", ""),),
        replace(_LANES, deadly=0.0, lane_modes=("leave_tasks",)),
    ),
    "job that its loop has cancelled told of as one whose worker was killed": Plant(
        "I27 more than one span",
        (("worker/lane_runner.py", ", is_cancelled=True)", ")"),),
        replace(_LANES, deadly=0.0, lane_modes=("overstay",)),
    ),
}
