"""The job of a pool on another store that leaves its board behind: it writes nothing into the ledger."""

from __future__ import annotations

import time

from queuepool import job


@job("Foreign@nap")
def nap() -> None:
    time.sleep(60)
