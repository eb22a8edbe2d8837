"""Run one command to its end in this process, which is quicker; ``commands.queuepool`` is the real thing."""

from __future__ import annotations

import os

import pytest

from queuepool.cli import run
from tests.support.commands import Done


def queuepool(capsys: pytest.CaptureFixture[str], *words: str | bytes) -> Done:
    """Only for what neither imports users' modules nor starts anything: that would stay in this process."""
    capsys.readouterr()
    code, told = run([os.fsdecode(word) for word in words]), capsys.readouterr()
    return Done(words, code, told.out, told.err)
