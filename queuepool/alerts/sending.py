"""Send notices of alerts: one per alert for all pools on the store, repeated after a time while it is raised.

They go through the operator's program and a webhook: one at a time, each sent by its own process.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from queuepool.alerts.notifier import MAX_ANSWER, TIMEOUT, Delivery
from queuepool.board.open_alerts import OpenAlert, words_of
from queuepool.board.status import iso
from queuepool.config.alerts import AlertSettings
from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.events import AlertUnsent
from queuepool.steward.side_stores import Emitter
from queuepool.stores.values import AlertClaim, Values
from queuepool.unix import fork, proc
from queuepool.unix.stray_processes import COOKIE

#: seconds after which a pool asks again whether it may take over an alert's notices from another pool
_ASK_AGAIN = 60.0
#: seconds in which an end of the connection shows; a store that is silent takes longer
_AT_ONCE = 1.0
#: most notices that wait
_MOST = 100
#: seconds between two looks at the process; and after which it is killed if its own alarm has not ended it
_TICK, _LATEST = 0.25, TIMEOUT + 10.0
#: run with our ``sys.path``: the same code wherever it was found, and nothing from the working directory before it
_PROGRAM = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from queuepool.alerts.notifier import main; main()"
_log = logging.getLogger("queuepool")
Notice = Mapping[str, Any]
_Key = tuple[str, str, str]
T = TypeVar("T")


class Refusals:
    """Logs once what the store keeps refusing. Outages are reported elsewhere."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._last = ""

    def note(self, error: StoreError) -> None:
        """Log the error, unless it is an outage or the same as the last one."""
        is_outage = isinstance(error, StoreDown) and not isinstance(error, StoreDenied)
        if not is_outage and str(error) != self._last:
            self._last = str(error)
            _log.warning("%s: %s", self._words, error)


class Notices:
    """Asks the store which pool sends a notice. Without the store, every pool sends its own.

    ``reach`` asks the store a question that changes nothing. ``repeat``: seconds after which the notice of an alert
    that is still raised is sent again.
    """

    def __init__(
        self, values: Values, reach: Callable[[], object], outbox: Outbox, pool: str, host: str, repeat: float
    ) -> None:
        self._values = values
        self._reach = reach
        self._outbox = outbox
        self._pool = pool
        self._host = host
        self._repeat = repeat
        self._is_away = self._has_reached = False
        self._refused = Refusals("pools cannot agree on who sends a notice, so each sends its own")

    def begin(self, *, is_away: bool) -> None:
        """Begin a look; ``is_away``: the store is known to be away, so it is not asked."""
        self._is_away, self._has_reached = is_away, False

    def send_if_due(self, alert: OpenAlert, now: float) -> OpenAlert:
        """Send the notice of a raised alert if it is due and ours to send; returns the alert with what to remember."""
        if now < alert.ask_at:
            return self._agreed(alert, now) if alert.is_alone else alert
        claim = self._claim(alert)
        is_new = claim in (AlertClaim.TAKEN, None)
        if is_new:
            self._add(alert, "raised")
        ask_at = now + (self._repeat if is_new else self._ask_again)
        return alert._replace(is_ours=claim is not AlertClaim.OTHERS, is_alone=claim is None, ask_at=ask_at)

    def send_cleared(self, alert: OpenAlert, now: float) -> None:
        """Send the notice that an alert has ended, if its key is ours, or was ours until it expired."""
        if alert.is_ours and (alert.is_alone or self._release(alert) or now >= alert.ask_at):
            self._add(alert, "cleared")

    def _agreed(self, alert: OpenAlert, now: float) -> OpenAlert:
        """Its notice was sent without the store: say there that it was, once it answers, or another pool sends it."""
        claim = self._claim(alert)
        if claim is AlertClaim.OTHERS:
            return alert._replace(is_ours=False, is_alone=False, ask_at=now + self._ask_again)
        return alert._replace(is_alone=claim is None)

    def _claim(self, alert: OpenAlert) -> AlertClaim | None:
        """Which pool sends the notices; ``None`` if the store does not answer."""
        return self._answer(partial(self._values.claim_alert, _key_of(alert), self._owner, self._repeat))

    def _release(self, alert: OpenAlert) -> bool:
        """Whether the key was ours; ``True`` if the store does not answer."""
        return self._answer(partial(self._values.release_alert, _key_of(alert), self._owner)) is not False

    def _answer(self, question: Callable[[], T]) -> T | None:
        """The store's answer; ``None`` if there is none."""
        if self._is_away:
            return None
        try:
            if not self._has_reached:
                self._begin_to_ask()
            return question()
        except StoreError as error:
            self._is_away = True  # the other alerts of this look need not wait for it too
            self._refused.note(error)
            return None

    def _begin_to_ask(self) -> None:
        """A connection that has ended since the last look must not pass for an absence of the store."""
        self._has_reached, began = True, time.monotonic()
        try:
            self._reach()
        except StoreError:
            if time.monotonic() - began > _AT_ONCE:
                raise

    @property
    def _ask_again(self) -> float:
        return min(_ASK_AGAIN, self._repeat)

    @property
    def _owner(self) -> str:
        # The same after a restart, so that the pool continues what it had begun.
        return f"{self._host}:{self._pool}"

    def _add(self, alert: OpenAlert, state: str) -> None:
        facts = {"kind": alert.kind, "subject": alert.subject, "value": alert.value, "limit": alert.limit}
        place = {"since": iso(alert.since), "pool": self._pool, "host": self._host}
        self._outbox.add({"state": state, **facts, **place, "text": words_of(alert)})


def _key_of(alert: OpenAlert) -> str:
    return f"{alert.kind}:{alert.subject}"


class _Sending(NamedTuple):
    """A notice that is being sent, and the process that sends it."""

    by: str
    notice: Notice
    process: subprocess.Popen[bytes]
    until: float


class Outbox:
    """Notices waiting to be sent, the latest for each alert and way; ``cookie`` marks the processes that send them."""

    def __init__(self, settings: AlertSettings, pool: str, cookie: str, emitter: Emitter) -> None:
        self._ways: dict[str, Mapping[str, Any]] = {}
        if settings.program:
            self._ways["exec"] = {"program": settings.program}
        if settings.webhook.url:
            self._ways["webhook"] = {"url": settings.webhook.url, "form": settings.webhook.form}
        self._pool = pool
        self._cookie = cookie
        self._emitter = emitter
        self._waiting: dict[_Key, Notice] = {}
        self._sending: _Sending | None = None
        #: by way, so that a lasting problem is reported once
        self._problems: dict[str, str] = {}

    @property
    def is_used(self) -> bool:
        """Whether a way to send notices is configured."""
        return bool(self._ways)

    def add(self, notice: Notice) -> None:
        """Send this notice when its turn comes."""
        for by in self._ways:
            key = by, str(notice["kind"]), str(notice["subject"])
            self._waiting.pop(key, None)
            if len(self._waiting) >= _MOST:
                dropped = next(iter(self._waiting))
                self._report(dropped[0], self._waiting.pop(dropped), f"more than {_MOST} notices are waiting")
            self._waiting[key] = notice

    def step(self) -> float | None:
        """Look at the process that sends, or start the next one; returns the seconds until the next step, if any."""
        if self._sending and not self._has_ended(self._sending):
            return _TICK
        self._sending = None
        if not self._waiting:
            return None
        key = next(iter(self._waiting))
        self._start(key[0], self._waiting.pop(key))
        return _TICK

    def _start(self, by: str, notice: Notice) -> None:
        request = json.dumps({"by": by, "pool": self._pool, "notice": notice, **self._ways[by]})
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, COOKIE: self._cookie},
            )
        except OSError as error:  # no room for a process
            self._report(by, notice, str(error))
            return
        assert process.stdin
        with suppress(BrokenPipeError), process.stdin:  # if the process died at once, the next step finds out
            process.stdin.write(request.encode())  # less than a pipe holds, so it never blocks
        self._sending = _Sending(by, notice, process, time.monotonic() + _LATEST)

    def _has_ended(self, sending: _Sending) -> bool:
        """Whether the process has ended; its answer is then reported."""
        process = sending.process
        if time.monotonic() >= sending.until and process.poll() is None:
            fork.kill(process.pid)
            process.wait()
        if process.poll() is None:
            return False
        assert process.stdout
        with process.stdout:
            answer = process.stdout.read(MAX_ANSWER)
        found = _read(answer, process.returncode)
        if found.output:
            _log.info("%s printed: %s", sending.by, found.output)
        if found.left:
            _log.warning("%s left %d processes behind, which were killed", sending.by, found.left)
        self._report(sending.by, sending.notice, found.problem)
        return True

    def _report(self, by: str, notice: Notice, problem: str) -> None:
        if problem and problem != self._problems.get(by):
            self._emitter.emit(AlertUnsent(by, str(notice["kind"]), str(notice["subject"]), problem))
        self._problems[by] = problem


def _read(answer: bytes, code: int) -> Delivery:
    """What became of the notice: by the process's answer, else by its exit code."""
    with suppress(ValueError, TypeError):
        return Delivery(*json.loads(answer))
    if code == -signal.SIGALRM:
        return Delivery(f"it took longer than {TIMEOUT:g} s")
    cause = proc.cause_of(-code if code < 0 else code << 8)
    return Delivery(f"its process died: {cause}", answer.decode("utf-8", "replace"))
