"""Mutants of what follows the end of a job: the outcome for Laravel, and the release of a unique lock."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, QUICK, QUIET, Plant

_STEPS = replace(QUIET, steps=40.0, step_modes=("nap",))
_KILLED = replace(
    QUICK, rate=40.0, backlog=5, bulk=5, naps=0.0, steps=40.0, step_modes=("nap",), drain=8.0, kill_every=(0.2, 0.5)
)
#: a worker must die between these two: they take their time
_PAUSE = "__import__('time').sleep(0.05)"
_A_WHILE = "__import__('time').sleep(0.15)"
_LONG_PAUSE = "__import__('time').sleep(0.3)"
_REMOVE = "        self._settler.settle(attempt.settlement(_DELETE))\n"
_FINISH = "return _ended(verb, ending, done_member(payload, run)), None"
_NEW_JOB = "__import__('queuepool.stores.contract', fromlist=['NewJob']).NewJob"
_PUSH_FIRST = f"""return lambda: (
                    ending.outcome and self._store.push(ending.outcome.queue, [{_NEW_JOB}(ending.outcome.payload)]),
                    {_A_WHILE},
                    self._store.finish(lease, ending._replace(outcome=None, member=done_member(payload, run))),
                )[-1], None"""
_RELEASE = "lambda: self._store.release(lease, delay, payload.id, counted_as, state)"

OF_ENDINGS = {
    "outcome pushed without the lease": Plant(
        "I20 more than one outcome",
        (
            (
                "stores/redis/lua/finish.lua",
                "if not is_held(redis.call('zscore', KEYS[1], ARGV[1]), tonumber(ARGV[2])) then return 0 end",
                "",
            ),
        ),
        replace(_STEPS, workers=1, remote=3, only=("lose_replies",), seconds=4.0),  # it is sent again
    ),
    "outcome pushed before its job ends": Plant(
        "I20 more than one outcome",
        (("settlement/settler.py", _FINISH, _PUSH_FIRST),),
        replace(_KILLED, store="sqlite"),
    ),
    "done step deleted as any other job": Plant(
        "I20 no outcome",
        (
            (
                "worker/attempt.py",
                "and self._follows(attempt)\n",
                "and False\n",
            ),
        ),
        _STEPS,
    ),
    "steward that deletes a done step as any other job": Plant(
        "I20 no outcome",
        (
            (
                "steward/settle_dead.py",
                " if self._is_followed(death, one)]",
                " if False]",
            ),
            ("worker/attempt.py", _REMOVE, f"        {_LONG_PAUSE}\n{_REMOVE}"),
        ),
        _KILLED,
    ),
    "lock released with a retry": Plant(
        "I21 lock released before its job was over",
        (
            (
                "settlement/settler.py",
                _RELEASE,
                _RELEASE.replace(" self", " self._store.unlock(self.endings.held_locks(payload, locks)) or self", 1),
            ),
        ),
        replace(_STEPS, store="sqlite", only=("hold_a_snapshot",), step_modes=("release",), phase=(0.5, 0.5)),
    ),
    "running job shown without its lease": Plant(
        "I22 a job that is over counts as not over",
        (
            (
                "stores/redis/lua/show.lua",
                "if type(score) == 'string' and is_held(score, tonumber(tag)) then",
                "if true then",
            ),
            ("steward/publish.py", "_REPORT_PERIOD, _REFRESH, STALE = 0.5,", "_REPORT_PERIOD, _REFRESH, STALE = 0.02,"),
            ("steward/publish.py", "        if written:\n", f"        {_PAUSE}\n        if written:\n"),
        ),
        replace(_STEPS, step_modes=("nap",)),
    ),
    "state of a done job that its dead worker left not written": Plant(
        "I22 a job that is over counts as not over",
        (
            (
                "settlement/settler.py",
                "state = self.states.done(payload, lease.queue, run)",
                "state = None if run.result_problem else self.states.done(payload, lease.queue, run)",
            ),
            ("worker/attempt.py", _REMOVE, f"        {_LONG_PAUSE}\n{_REMOVE}"),
        ),
        _KILLED,
    ),
    "attempt that is released without its record": Plant(
        "I33 not recorded",
        (
            (
                "settlement/settler.py",
                "        if self.attempts is not None:\n            lease =",
                "        if False:\n            lease =",
            ),
        ),
        replace(PEACE, hostile=20.0, modes=("raise",), records=True),
    ),
    "lock kept by a failed job": Plant(
        "I21 lock held by a job that is over",
        (
            (
                "settlement/settler.py",
                "ending = self.endings.after(payload, reason, locks)",
                "ending = self.endings.after(payload, reason, locks)._replace(unlocks=())",
            ),
        ),
        replace(_STEPS, step_modes=("fail", "raise")),
    ),
}
