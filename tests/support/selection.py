"""Which tests a run has: by default one case of each promise; with ``--all`` everything; or a part of the difference.

Three marks leave tests to ``--all``:

- ``thorough("why")``: the test, or the parameters so marked, says more only where much is at stake.
- ``every_store("name", ...)``: one value of the named parameters or fixtures by default, another one for each test and
  for each of its other parameters, so that all stores are met by some.
- ``by_turns("name", ...)``: the same for parameters that are no stores: each of their values beside one of the others,
  instead of beside all.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable
from zlib import crc32

import pytest

#: all that was found, before anything was left out
FOUND = pytest.StashKey[list[pytest.Item]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("queuepool's own tests")
    group.addoption("--all", action="store_true", dest="whole", help="every test, on every store")
    group.addoption("--part", metavar="K/N", type=_numbers, help="the K-th of N parts of what only --all runs")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[FOUND] = list(items)
    if config.option.whole:
        return
    left = left_to_all(items)
    wanted = _part(left, config.option.part) if config.option.part else set(items) - left
    config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
    items[:] = [item for item in items if item in wanted]


def left_to_all(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The tests that only ``--all`` runs."""
    left, cases, turns = set(), defaultdict(list), Counter[str]()
    for item in items:
        if item.get_closest_marker("thorough"):
            left.add(item)
        elif names := _varied(item):
            cases[_case(item, names)].append(item)
    for case in cases.values():
        function = _function(case[0])
        left |= set(case) - {case[(_number(function) + turns[function]) % len(case)]}
        turns[function] += 1
    return left


def _varied(item: pytest.Item) -> set[str]:
    """The parameters of the test that one value is enough for."""
    names = {name for mark in item.iter_markers() if mark.name in ("every_store", "by_turns") for name in mark.args}
    return names & set(item.callspec.params) if hasattr(item, "callspec") else set()


def _case(item: pytest.Item, varied: set[str]) -> tuple[object, ...]:
    """What the test and those that differ from it only in the varied parameters have in common."""
    assert isinstance(item, pytest.Function)
    # The values themselves: pytest's own indices are another one for each test.
    others = ((name, id(value)) for name, value in item.callspec.params.items() if name not in varied)
    return (_function(item), *others)


def _numbers(part: str) -> tuple[int, int]:
    number, _, count = part.partition("/")
    if number.isdecimal() and count.isdecimal() and 0 < int(number) <= int(count):
        return int(number), int(count)
    raise argparse.ArgumentTypeError(f"{part!r} is not a part, such as 3/8")


def _part(items: set[pytest.Item], part: tuple[int, int]) -> set[pytest.Item]:
    """By test, not by file: half of the work is in two files."""
    number, count = part
    return {item for item in items if _number(item.nodeid) % count == number % count}


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _number(text: str) -> int:
    """The same in every process: ``hash`` is not."""
    return crc32(text.encode())
