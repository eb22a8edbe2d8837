"""The states of tracked jobs, as JSON: written in the same step in which a job is settled.

    {"state": …, "name": …, "queue": …, "attempts": …, "since": SECONDS, …}

``state`` is ``queued``, ``delayed``, ``running``, ``released``, ``done``, ``failed`` or ``cancelled``. What is unknown
is left out. Times are Unix seconds. The result of an encrypted job is not kept, as it would not be encrypted.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

from queuepool.config.values import LONGEST
from queuepool.errors import BadPayload, Cancelled
from queuepool.log.tracebacks import summary
from queuepool.payload.command import is_encrypted
from queuepool.payload.encrypter import MARK
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import StateRecord
from queuepool.payload.strict_json import as_json
from queuepool.settlement.verdict import NOT_RUN, Run
from queuepool.stores.records import FailedJob

#: seconds that the state of an unfinished job is kept: a job whose store is emptied never ends
UNFINISHED_LASTS = 30 * 86400.0
#: most bytes of a result as JSON
MAX_RESULT = 64 * 1024
#: most characters of a name, and of an error
_MOST = 2000


class States:
    """Makes the states of a pool's jobs. ``default``: seconds to keep those of jobs that set none; 0 = not tracked."""

    def __init__(self, default: float = 0.0) -> None:
        self._default = default
        self._host = os.uname().nodename

    def kept(self, payload: Payload) -> float:
        """Seconds that the state of this job is kept after its end; 0 = it is not tracked."""
        asked = payload.options.track
        return self._default if asked is None else min(asked, LONGEST)  # as for the delay of a release

    @property
    def tracks_all(self) -> bool:
        """Whether jobs are tracked even if their payload does not ask for it."""
        return self._default > 0

    def done(self, payload: Payload, queue: str, run: Run) -> StateRecord | None:
        """For a job that has succeeded or was skipped."""
        if run.cancelled:
            return self._ended(payload, queue, "cancelled", run, error=run.cancelled)
        return self._ended(payload, queue, "done", run, progress=None if run.progress is None else 1.0)

    def failed(self, payload: Payload, queue: str, run: Run, error: BaseException) -> StateRecord | None:
        """For a job that has failed for good, or was cancelled."""
        state = "cancelled" if isinstance(error, Cancelled) else "failed"
        return self._ended(payload, queue, state, run, error=error)

    def released(
        self, payload: Payload, queue: str, run: Run, delay: float, error: BaseException | None
    ) -> StateRecord | None:
        """For a job that is to be tried again."""
        due = {"due": time.time() + delay, "error": error}
        return self._record(payload, queue, "released", run, UNFINISHED_LASTS + delay, **due)

    def running(self, payload: Payload, queue: str, run: Run, *, until: float, **worker: object) -> StateRecord | None:
        """For a job that a worker runs; out of date unless it is written again before ``until`` (Unix seconds)."""
        return self._record(payload, queue, "running", run, UNFINISHED_LASTS, since=run.began, until=until, **worker)

    def given_back(self, payload: Payload, queue: str) -> StateRecord | None:
        """For a job whose worker was stopped: it waits again, with as many attempts as before."""
        attempts = max(payload.attempts - 1, 0)
        return self._record(payload, queue, "queued", NOT_RUN, UNFINISHED_LASTS, attempts=attempts)

    def _ended(self, payload: Payload, queue: str, state: str, run: Run, **facts: Any) -> StateRecord | None:
        return self._record(payload, queue, state, run, self.kept(payload), **facts)

    def _record(
        self, payload: Payload, queue: str, state: str, run: Run, seconds: float, **facts: Any
    ) -> StateRecord | None:
        if not self.kept(payload):
            return None
        about = {"state": state, "name": payload.name[:_MOST], "queue": queue, "attempts": payload.attempts}
        known = {"pushed": payload.pushed_at, "began": run.began, "host": self._host}
        shown = {"progress": run.progress, "note": run.note or None, **_kept_of(payload, run)}
        return _recorded(payload.id, seconds, **{**about, **known, **shown, **facts})


def pushed(job_id: str, name: str, queue: str, delay: float) -> StateRecord:
    """The first state of a job, written with its push; ``delay`` in seconds."""
    now = time.time()
    state, due = ("delayed", now + delay) if delay else ("queued", None)
    return _recorded(job_id, UNFINISHED_LASTS + delay, state=state, name=name[:_MOST], queue=queue, pushed=now, due=due)


def retried(
    failed: Sequence[FailedJob], tracked: Callable[[Sequence[str]], Collection[str]], queue: str | None = None
) -> list[StateRecord | None]:
    """The state of each of these failed jobs that is put back on its queue, or on this one; ``None`` if untracked.

    ``tracked`` returns those of the ids that have a stored state.
    """
    payloads = [_decoded(one.payload.encode("utf-8", "replace")) for one in failed]
    stored = tracked([payload.id for payload in payloads if payload and not payload.options.track])
    return [
        pushed(payload.id, payload.name, queue or one.queue, 0.0)
        if payload and (payload.options.track or payload.id in stored)
        else None
        for one, payload in zip(failed, payloads, strict=True)
    ]


def cancelled(raw: bytes, attempts: int | None, queue: str, why: str) -> StateRecord | None:
    """The kept state of a job that is taken out of this queue for good; ``None`` for what cannot be a job.

    ``why``: as in "dropped by ana@web".
    """
    payload = _decoded(raw, attempts)
    if payload is None:
        return None
    return States(UNFINISHED_LASTS).failed(payload, queue, NOT_RUN, Cancelled(f"{payload.name}: {why}"))


def moved(raw: bytes, attempts: int | None, queue: str, due: float | None) -> StateRecord | None:
    """What the kept state of a waiting job becomes that is moved to this queue; ``due`` if it is delayed."""
    payload = _decoded(raw, attempts)
    if payload is None:
        return None
    known = {"name": payload.name[:_MOST], "queue": queue, "attempts": payload.attempts, "pushed": payload.pushed_at}
    seconds = UNFINISHED_LASTS + max((due or 0.0) - time.time(), 0.0)
    return _recorded(payload.id, seconds, state="queued" if due is None else "delayed", due=due, **known)


def _decoded(raw: bytes, attempts: int | None = None) -> Payload | None:
    with suppress(BadPayload):
        return decode(raw, attempts)
    return None


def _recorded(job_id: str, seconds: float, **facts: Any) -> StateRecord:
    """The record of these facts, kept for ``seconds``; facts that are ``None`` are left out."""
    found = {key: _plain(value) for key, value in {"since": time.time(), **facts}.items() if value is not None}
    return StateRecord(job_id, json.dumps(found).encode(), seconds)


def result_of(value: object) -> tuple[str, str]:
    """The value that a handler returned, as JSON, and why it is not kept if it cannot be; either may be empty."""
    if value is None:
        return "", ""
    try:
        text = json.dumps(value, allow_nan=False, default=as_json, separators=(",", ":"))
    except Exception as error:  # noqa: BLE001 - the application's types may have their own encoders
        return "", summary(error)
    if len(text) > MAX_RESULT:
        return "", f"{len(text)} bytes of JSON, at most {MAX_RESULT} are kept"
    return text, ""


def _kept_of(payload: Payload, run: Run) -> dict[str, str | None]:
    if run.result and is_secret(payload):
        return {"result_problem": "the job is encrypted"}
    return {"result": run.result or None, "result_problem": run.result_problem or None}


def is_secret(payload: Payload) -> bool:
    """Whether the job is encrypted."""
    data = payload.data if isinstance(payload.data, dict) else {}
    return MARK in data or is_encrypted(str(data.get("command") or "O:"))


def _plain(value: object) -> object:
    """An error as text, even if its own ``str`` fails; anything else as it is."""
    return summary(value)[:_MOST] if isinstance(value, BaseException) else value
