"""Celery's prefork pool: jobs acknowledged before they run, as is its default, or after."""

from __future__ import annotations

from collections.abc import Sequence

from celery import Celery as App

from tests.bench.peers.jobs import EVERY, limit
from tests.bench.peers.peer import AS_USUAL, BIN, url

_PREFETCH = 64


def _app(*, late: bool) -> App:
    app = App("late" if late else "early", broker=url())
    app.conf.update(
        task_ignore_result=True,
        worker_prefetch_multiplier=_PREFETCH,
        task_acks_late=late,
        task_reject_on_worker_lost=late,
        task_default_queue=app.main,
    )
    for name, function in EVERY.items():
        app.task(name=name, **limit(name, "time_limit"))(function)
    return app


early, late = _app(late=False), _app(late=True)


class Celery:
    pushes = True
    fields = AS_USUAL
    strengths = {"memory": "Its children share what the parent has imported."}

    def __init__(self, name: str, app: App, settings: str, *, keeps: bool) -> None:
        self.name, self.keeps = name, keeps
        self.settings = f"prefork, {settings}, results ignored, prefetch {_PREFETCH}, no gossip, mingle, heartbeat"
        self._app = app

    def push(self, job: str, n: int) -> None:
        self._app.tasks[job].apply_async((n,))

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        with self._app.producer_or_acquire() as producer:
            for n in numbers:
                self._app.tasks[job].apply_async((n,), producer=producer)

    def commands(self, workers: int) -> list[list[str]]:
        words = [f"{BIN}/celery", "-A", f"{__name__}:{self._app.main}", "worker", "--concurrency", str(workers)]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"]
        return [[*words, "--pool", "prefork", *quiet]]


PEERS = [
    Celery("Celery", early, "acknowledged before it runs", keeps=False),
    Celery("Celery acks_late", late, "`task_acks_late`, `task_reject_on_worker_lost`", keeps=True),
]
