"""The alerts that are raised at the moment, in a file beside the board: its steward writes it, all others read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from queuepool.board.board import Board
from queuepool.board.boot_report import replace_text, text_in
from queuepool.board.record import DAMAGED, as_time

#: most alerts that a pool raises at once, most of these that are about one queue or job each, and most characters of a
#: subject and of a detail
MAX_ALERTS, MAX_OF_ONE, MAX_SUBJECT = 110, 100, 200
#: bytes that are read of the file: more than it can have
_MAX_BYTES = 512 * 1024
_WORDS = {
    "wait": "queue {subject}: the next job has been ready for {value}",
    "overdue": "queue {subject}: a job has been due for {value} and is still delayed",
    "unserved": "queue {subject}: no pool serves it, and its next job has waited for {value}",
    "failures": "queue {subject}: {value} of the attempts of the last five minutes failed",
    "running": "job {subject} has run for {value}",
    "failed": "{subject}: {value} kept",
    "quarantine": "queue {subject}: {value} in quarantine",
    "crashes": "pool {subject}: {value} died within five minutes",
    "failed_flows": "pool {subject}: {value} failed within five minutes",
    "stalled": "flow {subject}: none of its jobs has begun or ended for {value}",
    "parked": "limit {subject}: a job has waited for a place for {value}",
    "unused": "limit {subject}: a place has been free for {value}, though jobs wait for it",
    "lost": "pool {subject} has published nothing for {value}",
    "store": "the {subject} has been away for {value}",
    "store_full": "the {subject} has been full for {value}",
    "boot": "pool {subject}: the newest code has not become ready for {value}",
    "paused": "{subject} has lasted for {value}",
}
_COUNTS = ("failed", "quarantine", "crashes", "failed_flows")
#: what is counted, where the words name it by its number
_NOUNS = {"quarantine": "payload", "crashes": "worker", "failed_flows": "flow"}


class OpenAlert(NamedTuple):
    """An alert that is raised. Its value and limit are seconds, counts, or shares from 0 to 1, by its kind."""

    kind: str
    #: the queue, job, pool or store that it is about
    subject: str
    value: float
    limit: float
    #: when the limit was first reached, in Unix seconds by this host's clock
    since: float
    #: whether this pool sends its notices; and whether it took that right without the store, as other pools may have
    is_ours: bool = False
    is_alone: bool = False
    #: when it asks for that right next, in Unix seconds
    ask_at: float = 0.0
    #: what else is known, in words
    detail: str = ""


def read(board: Board) -> tuple[OpenAlert, ...]:
    """The alerts of this pool, by kind and subject; none if its file cannot be read."""
    with suppress(*DAMAGED):  # a job has overwritten it
        found = json.loads(text_in(_file_of(board), _MAX_BYTES) or "[]")
        return tuple(_checked(OpenAlert(*one)) for one in found[:MAX_ALERTS])
    return ()


def write(board: Board, alerts: Sequence[OpenAlert]) -> None:
    """Replace them. Raises ``OSError``."""
    replace_text(_file_of(board), json.dumps(alerts, ensure_ascii=False))


def words_of(alert: OpenAlert) -> str:
    """What is wrong, in one line, with the limit that was reached."""
    words = _WORDS.get(alert.kind, "{subject}: {value}")
    value, limit = (_shown(alert.kind, number) for number in (alert.value, alert.limit))
    if noun := _NOUNS.get(alert.kind):
        value += f" {noun}" if value == "1" else f" {noun}s"
    more = f"; {alert.detail}" if alert.detail else ""
    return f"{words.format(subject=alert.subject, value=value)} (limit {limit}){more}"


def _checked(read: OpenAlert) -> OpenAlert:
    """Raises ``ValueError`` and ``TypeError`` for what no steward can have written."""
    value, limit = map(float, (read.value, read.limit))
    since, ask_at = map(as_time, (read.since, read.ask_at))
    return OpenAlert(
        str(read.kind), str(read.subject), value, limit, since, bool(read.is_ours), bool(read.is_alone), ask_at,
        str(read.detail),
    )  # fmt: skip


def _file_of(board: Board) -> Path:
    return board.path.with_name(f"{board.path.name}.alerts")


def _shown(kind: str, number: float) -> str:
    if kind == "failures":
        return f"{number:.0%}"
    return f"{number:.0f}" if kind in _COUNTS else f"{number:.0f} s"
