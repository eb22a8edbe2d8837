"""A type checker checks ``dispatch`` like the function itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[1] / "support/typed_dispatches.py"


def test_a_type_checker_accepts_right_dispatches_and_refuses_wrong_ones():
    pytest.importorskip("mypy", reason="it is in one environment alone, as it does not matter on which Python it runs")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", str(SAMPLE)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=SAMPLE.parents[2], check=False).stdout
    refused = re.findall(r"typed_dispatches.py:(\d+): error: .*\[([a-z-]+)\]", said)
    expected = [
        (str(number), code[1])
        for number, line in enumerate(SAMPLE.read_text().splitlines(), 1)
        if (code := re.search(r"# refused: ([a-z-]+)", line))
    ]

    assert expected == refused, said
