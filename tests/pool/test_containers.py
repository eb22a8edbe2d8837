"""A pool in a container: process 1 of its own process namespace, with a volume that outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.eventually import eventually
from tests.support.pools import is_gone
from tests.support.probing import probe

#: a namespace whose processes all end with the command
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]

needs_unshare = pytest.mark.skipif(
    subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode != 0, reason="needs unshare"
)


@contextmanager
def container(site) -> Iterator[subprocess.Popen[bytes]]:
    """``start`` as process 1; killed with all of its processes at the end."""
    flags = [*site.flags("--workers", "1"), "--runtime-dir", str(site.path / "run")]
    command = [*CONTAINER, sys.executable, "-m", "queuepool", "start", *flags]
    with (site.path / "log").open("ab") as log:
        outer = subprocess.Popen(command, env=site.env(), stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield outer
    finally:
        inside = master_of(outer)
        outer.kill()
        outer.wait()
        eventually(lambda: all(map(is_gone, inside)))  # the first of a namespace is dead when all of it are


def master_of(outer: subprocess.Popen[bytes]) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def starts(site) -> int:
    return len(site.trail(event="start"))


@needs_unshare
@pytest.mark.fault("F90")
def test_a_job_begins_again_at_once_when_its_container_was_killed_twice_in_a_row(site):
    """Its lease has a minute and a half to go."""
    identity = site.push("until", gate=str(site.path / "gate"))
    for killed in (1, 2):
        with container(site):
            eventually(lambda killed=killed: starts(site) == killed)
    with container(site) as last:
        eventually(lambda: starts(site) == 3)
        eventually(lambda: 0 == probe("ready", site.path / "run").returncode)  # from the namespace around it
        (site.path / "gate").touch()
        eventually(lambda: site.trail(event="end", id=identity))
        [master] = master_of(last)
        os.kill(master, signal.SIGTERM)

        assert 0 == last.wait(timeout=60)
    assert 1 == len(site.trail(event="end"))
    assert [] == [path for path in (site.path / "run").glob("*/*") if path.name != "alive"]


@needs_unshare
@pytest.mark.fault("F15")
def test_what_a_job_has_left_ends_with_its_worker_though_the_master_is_everybodys_heir(site):
    site.push("bare", gate=str(site.path / "gate"), maxTries=1)
    with container(site) as outer:
        eventually(lambda: site.trail(event="child"))
        [master] = map(psutil.Process, master_of(outer))
        [left] = eventually(lambda: [child for child in master.children() if child.name() == "sleep"])
        [worker] = [child for child in master.children() if " busy " in " ".join(child.cmdline())]
        worker.kill()

        eventually(lambda: is_gone(left.pid))


@pytest.mark.thorough("the first test has a container's volume and its directory")
@needs_unshare
def test_a_volume_that_every_user_can_write_to_needs_a_directory_of_the_pools_own(site):
    """What the init container in conf/kubernetes.yml is for."""
    volume = site.path / "volume"
    volume.mkdir()
    volume.chmod(0o777)
    refused = site.run("start", *site.flags("--runtime-dir", str(volume)), check=False)
    subprocess.run(["mkdir", "-p", "-m", "0700", volume / "queuepool"], check=True)
    mounted = site.path / "mounted"
    mounted.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", f'mount --bind {volume}/queuepool {mounted} && exec "$@"', "sh"]
    with site.pool("--workers", "1", "--runtime-dir", str(mounted), parent=mount):
        site.push("ok")
        eventually(lambda: site.trail(event="end"))

    assert 78 == refused.returncode
    assert "is writable by every user" in refused.stderr
