"""Gates: files that a test touches to let jobs go on which hold for them."""

from __future__ import annotations

import time
from pathlib import Path


def until_told(gate: str) -> None:
    """Hold the job until the file exists."""
    while not Path(gate).exists():
        time.sleep(0.005)
