"""Deferred hooks: ``after_failed`` of jobs whose worker died. As it is user code, a living worker calls it.

The steward leaves a note in the pool's directory, and the first worker to rename the note takes it. So a hook runs at
most once, and one that kills its worker is not called again.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from queuepool import errors
from queuepool.payload.lease import Lease, LeaseRow

_log = logging.getLogger("queuepool")
_ERRORS = {kind.__name__: kind for kind in (errors.TimedOut, errors.WorkerDied, errors.Cancelled)}
# The name that an older steward writes.
_ERRORS["JobTimedOut"] = errors.TimedOut


@dataclass(frozen=True, slots=True)
class DeferredHook:
    """A job that was recorded as failed, and its error."""

    lease: Lease
    error: errors.AttemptLost


def leave(directory: Path, store: str, lease: Lease, error: errors.AttemptLost) -> None:
    """Leave a note for workers on the same store, completely or not at all. Called by the steward.

    If it cannot be written, the hook is not called, which is logged.
    """
    note = {
        "queue": lease.queue,
        "receipt": lease.receipt.decode(),
        "row": lease.row,
        "error": type(error).__name__,
        "message": str(error),
        "trace": error.trace,
    }
    draft = directory / f"draft.{os.urandom(8).hex()}"
    try:
        draft.write_text(json.dumps(note))
        draft.rename(draft.with_name(draft.name.replace("draft", f"hook.{store}")))
    except OSError as error:
        say_not_called(lease.queue, f"{directory}: {error.strerror}")
        with suppress(OSError):
            draft.unlink()


def say_not_called(queue: str, why: str) -> None:
    """Log that nobody calls the hook of a job of this queue."""
    _log.error("after_failed is not called for a job of queue %s: %s", queue, why)


def take(directory: Path, store: str) -> DeferredHook | None:
    """Take one note; ``None`` when there is none. Notes for another store belong to another application."""
    for path in directory.glob(f"hook.{store}.*"):
        taken = path.with_name(f"taken.{path.suffix[1:]}")
        try:
            path.rename(taken)
        except FileNotFoundError:
            continue  # another worker was faster
        if hook := _read(taken):
            return hook
    return None


def _read(path: Path) -> DeferredHook | None:
    """What the steward wrote; ``None`` if the file is anything else. Removes the file in either case."""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            return None
        note = json.loads(path.read_text())
        error = _ERRORS[note["error"]](note["message"], note["trace"])
        row = LeaseRow(*map(int, note["row"])) if note["row"] else None
        return DeferredHook(Lease(note["queue"], note["receipt"].encode(), row=row), error)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    finally:
        with suppress(OSError):
            path.unlink()
