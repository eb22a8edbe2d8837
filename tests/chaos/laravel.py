"""Laravel's own worker on the pools' queues, beside them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from tests.chaos.rig import Rig
from tests.chaos.world import ROOT

PEER = ROOT / "tests" / "laravel"


def laravel_too(rig: Rig) -> Iterator[float]:
    """`queue:work` as a daemon, stopped at the end; nothing if there is no PHP."""
    worker = _start(rig) if shutil.which("php") else None
    try:
        while True:
            yield 1.0
    finally:
        if worker:
            worker.terminate()
            worker.wait(20)
            rig.ledger.write("death", pid=worker.pid)


def _start(rig: Rig) -> subprocess.Popen[bytes]:
    flags = ["--queue=high,default", "--sleep=0.02", "--tries=0", "--timeout=0"]
    flags += [f"--retry-after={rig.plan.retry_after:.0f}", f"--boot={PEER / 'chaos.php'}"]
    with (rig.folder / "laravel.out").open("ab") as output:
        return subprocess.Popen(
            ["php", str(PEER / "peer.php"), "work", *flags],
            env={**rig.env(), **rig.store.laravel(), "QP_OUT": str(rig.folder / "laravel.jsonl")},
            stdout=output, stderr=output,
        )  # fmt: skip
