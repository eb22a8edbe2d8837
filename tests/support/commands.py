"""Run the real command to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import warm

ROOT = Path(__file__).parents[2]
Done = subprocess.CompletedProcess[str]


def queuepool(*words: str | bytes, env: dict[str, str] | None = None, **more: Any) -> Done:
    """``env`` is added to our environment, which is passed on without its ``QUEUEPOOL_`` variables.

    ``more`` is as of ``warm.run``.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("QUEUEPOOL_")}
    usual: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    command = [sys.executable, "-m", "queuepool", *words]
    return warm.run(command, env={**inherited, "PYTHONPATH": str(ROOT), **(env or {})}, **{**usual, **more})


def migrate_at(url: str) -> str:
    """What errors advise when the URL was a flag: the command as typed, but without a login."""
    return f"queuepool migrate --url {'...' if '@' in url else url}"
