"""The job of a pool on another store, which leaves its board behind. It writes nothing into the ledger."""

from __future__ import annotations

import time

from queuepool import job


@job("Foreign@nap")
def nap() -> None:
    time.sleep(60)
