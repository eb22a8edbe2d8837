"""Mutants of steps: what is kept of a job, and where its next attempt goes on."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import QUICK, Plant

#: a job needs a third of a second, and its rows most of that: who is killed sooner has none to lose
_STEPPED = replace(
    QUICK, rate=20.0, backlog=5, bulk=5, naps=0.0, hostile=20.0, modes=("stepped",), drain=8.0, seconds=4.0,
    kill_every=(0.2, 0.5),
)  # fmt: skip
_BODY = """            with steps.part(is_step=False):
                yield row
"""
_MOVED = """            if steps.moves(self._name, place):
                steps.keep({})
            steps.leave_if_asked()
"""

OF_STEPS = {
    "cursor that moves before the body of its row": Plant(
        "S1 effect left out",
        (("jobs/steps.py", f"{_BODY}{_MOVED}", f"{_MOVED}{_BODY}"),),
        _STEPPED,
    ),
    "place that only the store has": Plant(
        "S2 effect again",
        (("worker/step_keeper.py", "        self._context.slot_writer.place(job.id, name, place)", "        pass"),),
        _STEPPED,
    ),
    "step that is kept after the next one has begun": Plant(
        "S2 effect again",
        (
            (
                "jobs/attempt_steps.py",
                "                    self.keep({name: raw})\n",
                "                    self._moved[name] = raw\n",
            ),
        ),
        _STEPPED,
    ),
}
