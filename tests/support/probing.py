"""The probe as a container runs it: a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.pools import ROOT

PROBE = ROOT / "queuepool_probe.py"
#: without the environment's packages: it needs none
PYTHON = (sys.executable, "-I", "-S")


def probe(
    question: str, folder: Path, *flags: str, parent: Sequence[str] = (), **more: object
) -> subprocess.CompletedProcess[str]:
    """Ask the pool below ``folder``; ``parent`` is a command that becomes the probe by ``exec``."""
    command = [*parent, *PYTHON, str(PROBE), question, "--dir", str(folder), *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **more)  # type: ignore[call-overload,no-any-return]
