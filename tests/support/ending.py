"""An end of the tests at INT and TERM within seconds, which leaves no process and no directory behind.

Of a run in several processes only the first one may get the signal, and xdist kills its workers if they do not end by
themselves: with them what they had started, and what would have cleared it away.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType

import psutil
import pytest
from xdist import workermanage

from queuepool.unix import proc

#: seconds after which xdist kills workers that have not ended, in place of its ten
_MOST = 60
_ended: list[int] = []
#: those of this process, once it is configured
_plugins: list[pytest.PytestPluginManager] = []


def pytest_configure(config: pytest.Config) -> None:
    """In the first process and in each worker."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _end)
    if config.pluginmanager.hasplugin("xdist"):
        workermanage.NodeManager.EXIT_TIMEOUT = _MOST
    _plugins.append(config.pluginmanager)


def pytest_unconfigure() -> None:
    """Kill what is left below the first process: xdist ends a worker that takes 15 s and more to clear away."""
    if _ended and _plugins[-1].hasplugin("dsession"):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where the test that was interrupted has caught everything."""
    if _ended:
        raise KeyboardInterrupt


def _end(signum: int, frame: FrameType | None) -> None:
    _ended.append(signum)
    # Once: a second one would break off what clears away. A program that is started gets neither.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _ended_already)
    if _plugins[-1].hasplugin("dsession"):  # then all that this process has started are its workers
        proc.adopt_orphans()
        for child in psutil.Process().children():
            child.send_signal(signal.SIGTERM)
    raise KeyboardInterrupt


def _ended_already(signum: int, frame: FrameType | None) -> None:
    """The end is under way."""


def _restore() -> None:
    """In a fork of a test's: as every process has it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


os.register_at_fork(after_in_child=_restore)
