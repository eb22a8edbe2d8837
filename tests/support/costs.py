"""Where a run's time goes: at its end, the CPU seconds in all and the ten dearest files."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support import warm

#: files that are shown
_SHOWN = 10
_KEY = pytest.StashKey["Costs"]()


class Costs:
    """CPU and wall seconds by file, in this process and in those that it has started."""

    def __init__(self) -> None:
        self.cpu: Counter[str] = Counter()
        self.wall: Counter[str] = Counter()

    @contextmanager
    def of(self, item: pytest.Item) -> Iterator[None]:
        cpu, began = _spent(), time.monotonic()
        yield
        file = item.nodeid.partition("::")[0]
        self.cpu[file] += _spent() - cpu
        self.wall[file] += time.monotonic() - began

    def add(self, told: dict[str, Any]) -> None:
        """What another process of the same run has measured."""
        self.cpu.update(told["cpu"])
        self.wall.update(told["wall"])


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_KEY] = Costs()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with item.config.stash[_KEY].of(item):
        yield


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with item.config.stash[_KEY].of(item):
        yield


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    if nextitem is None:  # the session's servers end now, which belong to no file
        yield
        return
    with item.config.stash[_KEY].of(item):
        yield


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    costs = session.config.stash[_KEY]
    if hasattr(session.config, "workeroutput"):  # in a process of pytest-xdist
        session.config.workeroutput["costs"] = {"cpu": dict(costs.cpu), "wall": dict(costs.wall)}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if told := getattr(node, "workeroutput", {}).get("costs"):  # not of one that has crashed
        node.config.stash[_KEY].add(told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    costs = config.stash[_KEY]
    if len(costs.cpu) <= 1:
        return
    # The processes of pytest-xdist are over by now, and the servers that they had.
    terminalreporter.section(f"{_of_all_processes():.0f} CPU seconds; the files that took most")
    for file, cpu in costs.cpu.most_common(_SHOWN):
        terminalreporter.write_line(f"{cpu:7.1f} s CPU {costs.wall[file]:7.1f} s  {file}")


def _spent() -> float:
    return _of_all_processes() + warm.seconds()


def _of_all_processes() -> float:
    """Of this process, and of those that it has reaped."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
