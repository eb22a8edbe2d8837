"""An alert in words, for people."""

from __future__ import annotations

from queuepool.board.open_alerts import OpenAlert

_WORDS = {
    "wait": "queue {subject}: the next job has been ready for {value}",
    "overdue": "queue {subject}: a job has been due for {value} and is still delayed",
    "unserved": "queue {subject}: no pool serves it, and nobody has taken its next job for {value}",
    "failures": "queue {subject}: {value} of the attempts of the last five minutes failed",
    "running": "job {subject} has run for {value}",
    "failed": "{subject}: {value} kept",
    "quarantine": "queue {subject}: {value} in quarantine",
    "crashes": "pool {subject}: {value} died within five minutes",
    "lost": "pool {subject} has published nothing for {value}",
    "store": "the {subject} has been away for {value}",
    "store_full": "the {subject} has been full for {value}",
    "boot": "pool {subject}: the newest code has not come to work for {value}",
    "paused": "{subject} has lasted for {value}",
}
_COUNTS = ("failed", "quarantine", "crashes")
#: what is counted, where the words name it by its number
_NOUNS = {"quarantine": "payload", "crashes": "worker"}


def words_of(alert: OpenAlert) -> str:
    """What is wrong, in one line, with the limit that was reached."""
    words = _WORDS.get(alert.kind, "{subject}: {value}")
    value, limit = (_shown(alert.kind, number) for number in (alert.value, alert.limit))
    if noun := _NOUNS.get(alert.kind):
        value += f" {noun}" if value == "1" else f" {noun}s"
    more = f"; {alert.detail}" if alert.detail else ""
    return f"{words.format(subject=alert.subject, value=value)} (limit {limit}){more}"


def _shown(kind: str, number: float) -> str:
    if kind == "failures":
        return f"{number:.0%}"
    return f"{number:.0f}" if kind in _COUNTS else f"{number:.0f} s"
