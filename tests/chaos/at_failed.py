"""People who retry failed jobs while the pools run."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator

from tests.chaos.laravel import PEER
from tests.chaos.rig import Rig

#: seconds that a person waits for an answer
_PATIENT = 120.0
#: jobs named in one command
_MOST = 50


def retry_all(rig: Rig) -> Iterator[float]:
    """Retry many of the jobs made for retries: the ledger knows how often all others may start."""
    while True:
        yield from _retried(rig, _MOST)


def retry_one(rig: Rig) -> Iterator[float]:
    """A few, each by its id."""
    while True:
        yield from _retried(rig, 5)


def retry_by_artisan(rig: Rig) -> Iterator[float]:
    """`queue:retry`, where Laravel has a table of failed jobs; nothing where there is no PHP."""
    tells = _laravels(rig)
    while True:
        ids = _failed(rig, _MOST) if tells and shutil.which("php") else []
        if ids:
            yield from _said(rig, ["php", str(PEER / "peer.php"), "retry", *ids], **tells)
        yield rig.chance.uniform(0.05, 0.5)


def _retried(rig: Rig, most: int) -> Iterator[float]:
    if ids := _failed(rig, most):
        yield from _said(rig, rig.pools[0].command("retry", *ids))
    yield rig.chance.uniform(0.05, 0.5)


def _failed(rig: Rig, most: int) -> list[str]:
    """Ids of failed jobs of the stream that is retried, at random."""
    with subprocess.Popen(
        rig.pools[0].command("failed", "--json"), env=rig.env(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as asked:
        listed = asked.communicate(timeout=_PATIENT)[0]
    ids = [row["id"] for row in json.loads(listed or "[]") if row["id"].startswith("r.")]
    return rig.chance.sample(ids, min(most, len(ids)))


def _laravels(rig: Rig) -> dict[str, str]:
    """The peer's settings of the stores; empty if none of them is a database."""
    jobs: dict[str, str] = rig.store.laravel()
    failed = rig.other.laravel().get("QP_URL", "") if rig.other else jobs.get("QP_URL", "")
    return {**jobs, "QP_FAILED_URL": failed, "QP_OUT": str(rig.folder / "laravel.jsonl")} if failed else {}


def _said(rig: Rig, command: list[str], **env: str) -> Iterator[float]:
    """Run one command to its end; a command broken off would leave jobs behind that are no fault of the pool."""
    with (rig.folder / "people.out").open("ab") as output:
        process = subprocess.Popen(command, env={**rig.env(), **env}, stdout=output, stderr=output)
    try:
        while process.poll() is None:
            yield 0.05
    finally:
        process.wait(_PATIENT)


NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "retry_all": (retry_all, 1),
    "retry_one": (retry_one, 1),
    "retry_by_artisan": (retry_by_artisan, 1),
}
