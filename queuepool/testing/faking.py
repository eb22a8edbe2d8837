"""``fake``: jobs are recorded and not run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from queuepool.testing.diverted import Recorder, diverted
from queuepool.testing.pushes import Pushes


@contextmanager
def fake() -> Iterator[Pushes]:
    """Record what this process dispatches, by any means and in any thread, and send none of it to its store.

    What a dispatch refuses it still refuses. The jobs wait in a temporary store, where ``drain`` can run them; so a
    unique job gets an empty id while an equal one waits. Raises ``QueuepoolError`` within another ``fake`` or
    ``run_now``.
    """
    recorder = Recorder("fake()")
    with diverted(recorder):
        try:
            yield recorder.recorded
        finally:
            recorder.settle()
