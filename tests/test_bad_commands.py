"""Bad command lines, by the real command."""

from __future__ import annotations

import pytest
from commands import queuepool
from corpus.command_lines import REFUSED, SECRET

USAGE = 2


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input(name: str) -> None:
    words, said = REFUSED[name]
    done = queuepool(*words)

    assert (USAGE, "", 1) == (done.returncode, done.stdout, len(done.stderr.splitlines())), done.stderr[-2000:]
    assert said in done.stderr
    assert 500 > len(done.stderr)
    assert done.stderr.rstrip("\n").isprintable()
    assert SECRET not in done.stderr
