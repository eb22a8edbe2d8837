"""PHP itself, to ask what it reads and writes."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def php(code: str, given: str = "") -> str:
    """What the PHP ``code`` prints, ``given`` being its standard input."""
    if shutil.which("php") is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs php")
    done = subprocess.run(
        ["php", "-d", "display_errors=stderr", "-r", code],
        input=given.encode("utf-8", "surrogateescape"),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (0, b"") == (done.returncode, done.stderr)
    return done.stdout.decode("utf-8", "surrogateescape")
