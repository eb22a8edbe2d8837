"""Handlers that the corpus' payloads may run, and some that they must not run."""

from __future__ import annotations

import hashlib
import json
import sys

from queuepool import current, job
from tests.support.poolapp import note

#: what a payload's name might have had imported
NEVER = ("antigravity",)


def digest(args: object, kwargs: object) -> str:
    """What a handler was given, in few characters; also as deep as a payload may be."""
    sys.setrecursionlimit(10_000)
    return hashlib.sha256(json.dumps([args, kwargs]).encode()).hexdigest()


def run(*args: object, **kwargs: object) -> None:
    imported = [name for name in NEVER if name in sys.modules]
    now = current()
    note(event="ran", id=now.id, attempts=now.attempts, digest=digest(args, kwargs), imported=imported)


def must_not_run(to: str, template: str = "welcome") -> None:
    note(event="must not run", id=current().id)


for name in ("app.ok", "x", '"attempts":0,'):
    job(name)(run)
for name in ("app.mail", "App\\Jobs\\Mail"):
    job(name)(must_not_run)
job("app.none")(lambda: note(event="must not run", id=current().id))
