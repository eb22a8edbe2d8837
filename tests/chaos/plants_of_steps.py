"""Mutants of steps: what is kept of a job, and where its next attempt goes on."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import QUICK, Plant

_STEPPED = replace(
    QUICK, rate=20.0, backlog=5, bulk=5, naps=0.0, hostile=20.0, modes=("stepped",), drain=8.0, seconds=4.0
)
_MOVED = """                if values := steps.moves(self._name, self._place(row)):
                    steps.keep(values)
                steps.leave_if_asked()
"""

OF_STEPS = {
    "cursor that moves before the body of its row": Plant(
        "S1 effect left out",
        (
            (
                "jobs/steps.py",
                f"            yield row\n            if steps:\n{_MOVED}",
                f"            if steps:\n{_MOVED}            yield row\n",
            ),
        ),
        _STEPPED,
    ),
    "place that only the store has": Plant(
        "S2 effect again",
        (("worker/step_keeper.py", "        self._context.slot_writer.place(name, place)", "        pass"),),
        _STEPPED,
    ),
    "step that is kept after the next one has begun": Plant(
        "S2 effect again",
        (
            (
                "jobs/steps.py",
                "            self.keep({name: raw})\n        self.leave_if_asked()",
                "            self._moved = (name, raw)\n        self.leave_if_asked()",
            ),
        ),
        _STEPPED,
    ),
}
