"""A chaos run that is killed leaves no file system behind, on which later runs could not clean up."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

MOUNTS = """
import sys
from pathlib import Path
from tests.chaos import disks
folder = Path(sys.argv[1])
print(disks.mount(folder, "64k"), folder.is_mount(), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_mount_is_seen_only_by_the_run_that_has_made_it(tmp_path):
    folder = tmp_path / "disk"
    command = [sys.executable, "-c", MOUNTS, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        answer = run.stdout.readline()
        seen = folder.is_mount()
        run.kill()

    assert ("True True\n", False) == (answer, seen)
