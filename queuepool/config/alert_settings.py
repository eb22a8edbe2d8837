"""The settings of the section ``[alerts]``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Webhook(NamedTuple):
    """A URL that notices are posted to, which may hold a secret; empty = none.

    ``form``: that of the body, ``json`` or ``slack``.
    """

    url: str = ""
    form: str = "json"


_NOWHERE = Webhook()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """From which value on an alert is raised. Times in seconds, 0 = never."""

    #: by queue: how long its next job may be ready; of the queue ``""``, for all that have no value of their own
    wait: tuple[tuple[str, float], ...] = (("", 60.0),)
    #: how long a due job may stay delayed
    overdue: float = 30.0
    #: how long the next job of a queue may stay where it is that no pool serves
    unserved: float = 300.0
    #: the share of failed attempts in those that ended within five minutes, from 0 to 1
    failures: float = 0.2
    #: how long a job may run
    running: float = 3600.0
    #: records of failed jobs
    failed: int = 1000
    #: payloads in quarantine
    quarantine: int = 1
    #: workers that died within five minutes
    crashes: int = 5
    #: for how long a pool may publish nothing
    lost: float = 30.0
    #: for how long the store may be away
    store: float = 60.0
    #: for how long the store may be full
    store_full: float = 60.0
    #: for how long the newest code may fail to come to work
    boot: float = 30.0
    #: for how long a queue, or the pool, may be paused
    paused: float = 86400.0
    #: after which a notice of an alert that is still raised is sent again
    repeat: float = 3600.0
    #: the program that gets notices, with its arguments; empty = none
    program: tuple[str, ...] = ()
    #: where notices are posted
    webhook: Webhook = field(default=_NOWHERE, repr=False)

    def wait_of(self, queue: str) -> float:
        """The limit of this queue's wait; 0.0 = none."""
        limits = dict(self.wait)
        return limits.get(queue, limits.get("", 0.0))
