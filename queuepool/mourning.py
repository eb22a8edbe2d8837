"""Jobs that failed with their worker: their ``after_failed`` is user code, so a living worker calls it.

The steward leaves a note in the pool's directory; whichever worker comes first takes it by removing it, so a hook
runs once at most, and one that kills its worker is not called again.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from queuepool import errors
from queuepool.stores.base import Lease


@dataclass(frozen=True, slots=True)
class Mourned:
    """A job that is recorded as failed, and the error that it failed with."""

    lease: Lease
    error: errors.AttemptLost


def leave(directory: Path, lease: Lease, error: errors.AttemptLost) -> None:
    """The steward's note; whole or not at all."""
    note = {
        "queue": lease.queue,
        "receipt": lease.receipt.decode(),
        "error": type(error).__name__,
        "message": str(error),
        "trace": error.trace,
    }
    draft = directory / f"draft.{os.urandom(8).hex()}"
    draft.write_text(json.dumps(note))
    draft.rename(draft.with_name(draft.name.replace("draft", "mourn")))


def take(directory: Path) -> Mourned | None:
    """One note, now ours; ``None`` when there is none."""
    for path in directory.glob("mourn.*"):
        mine = path.with_name(f"taken.{path.suffix[1:]}")
        try:
            path.rename(mine)
        except FileNotFoundError:
            continue  # another worker was first
        note = json.loads(mine.read_text())
        mine.unlink()
        kind: type[errors.AttemptLost] = getattr(errors, note["error"])
        return Mourned(Lease(note["queue"], note["receipt"].encode()), kind(note["message"], note["trace"]))
    return None
