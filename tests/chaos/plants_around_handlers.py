"""Mutants of what surrounds a handler: the soft timeout of an async one, and the hooks and events of a tracer."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, Plant

_SOFT = "worker/invoker.py"
_QUIET = replace(PEACE, workers=1, rate=20.0, backlog=5, bulk=5, hostile=12.0, drain=2.0)
_RETURN = "            return await work\n"
_BEFORE_IT_EXITS = "        self._invoker.leave_if_forked(attempt.error)\n        if has_returned if "
_LEAVE = "        if entered:\n            self._hooks.leave(job, entered, attempt.error)\n"

OF_HANDLERS = {
    "soft timeout of an async handler at half its time": Plant(
        "I23 soft timeout too early",
        (("worker/invoker.py", "limited(result, end - time.monotonic(),", "limited(result, soft_timeout / 2,"),),
        replace(_QUIET, modes=("async_soft_past",), seconds=1.0),
    ),
    "soft timeout of an async handler that never comes": Plant(
        "I23 no soft timeout",
        ((_SOFT, "asyncio.timeout(seconds)", "asyncio.timeout(None)"),),
        replace(_QUIET, modes=("async_soft_past",), seconds=1.0, drain=3.5, stop=0.5),
    ),
    "async job that caught its soft timeout, tried again": Plant(
        "I5 done twice, unexplained",
        (
            (
                _SOFT,
                _RETURN,
                f"{_RETURN.replace('return', 'returned =')}"
                "        if limit.expired():\n            raise SoftTimeout(soft_timeout)\n        return returned\n",
            ),
        ),
        replace(_QUIET, modes=("async_soft_caught",), seconds=1.5),
    ),
    "killed attempt that no event reports": Plant(
        "I27 no span",
        (("settlement/settler.py", "        if cause:\n", "        if False:\n"),),
        replace(_QUIET, modes=("kill",), seconds=1.0),
    ),
    "hooks left in a forked copy of the worker, too": Plant(
        "I27 more than one span",
        (("worker/attempt.py", _BEFORE_IT_EXITS, f"{_LEAVE}{_BEFORE_IT_EXITS}"),),
        replace(_QUIET, modes=("fork_and_return_twice",), seconds=1.0),
    ),
}
