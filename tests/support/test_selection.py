"""What a run without options has, what ``--all`` adds, and that parts of it miss and repeat nothing."""

from __future__ import annotations

from collections import Counter

import pytest

pytest_plugins = ["pytester"]

STORES = ["redis", "sqlite", "postgres", "mariadb"]
MANY = 12
FILE = f"""
import pytest

@pytest.fixture(params={STORES})
def store(request):
    return request.param

@pytest.fixture(params={STORES})
def each(request):
    return request.param
"""
ON_ONE_STORE = "@pytest.mark.every_store('store')\ndef test_{}(store): ...\n"
OF_TWO_KINDS = """
@pytest.mark.every_store("store")
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", ["chain", "batch"])
def test_kinds(store, kind, fails): ...
"""
REST = """
def test_contract(each): ...

@pytest.mark.thorough("many more")
def test_long(): ...

@pytest.mark.parametrize("size", [1, pytest.param(9, marks=pytest.mark.thorough("as one, but larger"))])
def test_sizes(size): ...
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    many = "".join(ON_ONE_STORE.format(number) for number in range(MANY))
    pytester.makepyfile(test_one=FILE + many, test_two=FILE + OF_TWO_KINDS, test_three=FILE + REST)
    return pytester


def selected(suite: pytest.Pytester, *options: str) -> list[str]:
    """The tests of a run with these options, without their files."""
    run = suite.inline_run("-p", "tests.support.selection", "--collect-only", "-q", *options)
    [finished] = run.getcalls("pytest_collection_finish")
    return [item.nodeid.partition("::")[2] for item in finished.session.items]


def counted(names: list[str]) -> Counter[str]:
    return Counter(name.partition("[")[0] for name in names)


def stores_of(names: list[str], test: str) -> set[str]:
    return {store for name in names if name.startswith(test) for store in STORES if store in name}


def test_a_run_has_each_test_on_one_store_and_together_they_meet_all(suite: pytest.Pytester) -> None:
    found = selected(suite, "test_one.py")

    assert dict.fromkeys((f"test_{number}" for number in range(MANY)), 1) == counted(found)
    assert set(STORES) == stores_of(found, "test_")


def test_a_run_has_every_case_of_a_test_each_on_another_store(suite: pytest.Pytester) -> None:
    found = selected(suite, "test_two.py")

    cases = {name.partition("[")[2].partition("-")[2] for name in found}
    assert {f"{kind}-{fails}]" for kind in ("chain", "batch") for fails in (True, False)} == cases
    assert (4, set(STORES)) == (len(found), stores_of(found, "test_kinds"))


def test_a_run_leaves_out_what_is_thorough_and_nothing_else(suite: pytest.Pytester) -> None:
    found = selected(suite, "test_three.py")

    assert [*(f"test_contract[{store}]" for store in STORES), "test_sizes[1]"] == found


def test_all_leaves_nothing_out(suite: pytest.Pytester) -> None:
    found = counted(selected(suite, "--all"))

    assert {f"test_{number}": 4 for number in range(MANY)} | {
        "test_kinds": 16, "test_contract": 4, "test_long": 1, "test_sizes": 2
    } == found  # fmt: skip


@pytest.mark.by_turns("count")
@pytest.mark.parametrize("count", [1, 3])
def test_the_parts_together_are_what_only_all_has_and_no_test_is_in_two(suite: pytest.Pytester, count: int) -> None:
    parts = [selected(suite, f"--part={number}/{count}") for number in range(1, count + 1)]

    difference = Counter(selected(suite, "--all")) - Counter(selected(suite))
    assert difference == sum(map(Counter, parts), Counter())


@pytest.mark.thorough("of the tests' own machinery: the tests above choose by the same names")
def test_a_choice_does_not_depend_on_what_else_was_asked_for(suite: pytest.Pytester) -> None:
    [alone] = selected(suite, "test_one.py::test_7")

    assert alone in selected(suite)
    assert ["test_7[redis]"] == selected(suite, "test_one.py::test_7[redis]")


BY_TURNS = """
import pytest

@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["preload", "each boots"])
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_sizes(size, how): ...
"""


def test_a_run_has_each_value_of_two_parameters_that_take_turns(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_four=BY_TURNS)
    found = [name.removeprefix("test_sizes[").rstrip("]").split("-") for name in selected(pytester)]

    assert ["0", "1", "2", "3"] == [size for size, _ in found]
    assert {"preload": 2, "each boots": 2} == Counter(how for _, how in found)
    assert 8 == len(selected(pytester, "--all"))
