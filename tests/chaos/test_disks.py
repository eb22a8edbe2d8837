"""A chaos run that is killed leaves no file system behind, on which later runs could not clean up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MOUNTS = """
import sys
from pathlib import Path
from tests.chaos import disks
folder = Path(sys.argv[1])
print(disks.mount(folder, "64k"), folder.is_mount(), flush=True)
sys.stdin.read()
"""


def may_mount(folder: Path) -> bool:
    """Not every root may: in most containers none does. Asked of util-linux, in a namespace that ends with it."""
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    try:
        return 0 == subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
    except FileNotFoundError:
        return False


def test_a_mount_is_seen_only_by_the_run_that_has_made_it(tmp_path):
    if not may_mount(tmp_path):
        pytest.skip("mounting is not permitted")
    folder = tmp_path / "disk"
    command = [sys.executable, "-c", MOUNTS, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        answer = run.stdout.readline()
        seen = folder.is_mount()
        run.kill()

    assert ("True True\n", False) == (answer, seen)
