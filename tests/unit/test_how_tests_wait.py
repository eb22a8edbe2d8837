"""How tests wait: for the fact itself, and with room for a busy machine, so that none is red by a race of its own.

Each rule is of a test that was red so. `tests/support` has the right way: ``eventually`` for what will be so,
``processes.halt`` and ``processes.kill`` for signals that have arrived, ``is_gone`` for the dead, ``whole_lines`` and
``Pipe`` for what others write meanwhile. A job that must run while a test looks waits for a gate: the mode ``until``.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
#: seconds that a busy machine may take for anything; what is to be told apart from it takes longer by far
ROOM = 15.0
#: the programs that measure, inject faults and play incidents, with clocks of their own, and this file
OTHERS = ("bench/", "chaos/", "incidents/", "packaging/", "unit/test_how_tests_wait.py")


def paths() -> list[Path]:
    return [path for path in sorted(TESTS.rglob("*.py")) if not where(path).startswith(OTHERS)]


def where(path: Path) -> str:
    return str(path.relative_to(TESTS))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(module: ast.Module) -> dict[type[ast.AST], list[Any]]:
    """By their kinds, for all rules: to walk through all tests once takes seconds."""
    found = defaultdict[type[ast.AST], list[Any]](list)
    for node in ast.walk(module):
        found[type(node)].append(node)
    return found


def calls(module: ast.Module) -> list[ast.Call]:
    return nodes(module)[ast.Call]


def name_of(node: ast.expr) -> str:
    """``time.monotonic`` of a call of it; of a method of anything else ``.method``."""
    called = node.func if isinstance(node, ast.Call) else node
    if isinstance(called, ast.Attribute):
        return f"{called.value.id if isinstance(called.value, ast.Name) else ''}.{called.attr}"
    return called.id if isinstance(called, ast.Name) else ""


@cache
def constants(module: ast.Module) -> dict[str, ast.expr]:
    """What the file's own names at its top stand for."""
    assigned = [node for node in module.body if isinstance(node, ast.Assign)]
    return {target.id: node.value for node in assigned for target in node.targets if isinstance(target, ast.Name)}


def seconds(node: ast.expr | None, module: ast.Module) -> float | None:
    """The number, or what a name at the top of the file stands for; ``None`` if it is neither."""
    node = constants(module).get(node.id) if isinstance(node, ast.Name) else node
    return float(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) else None


def is_too_short(node: ast.expr | None, module: ast.Module) -> bool:
    found = seconds(node, module)
    return found is not None and found < ROOM


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((given.value for given in call.keywords if given.arg == name), None)


# The rules


def looks_at_a_number(module: ast.Module) -> Iterator[ast.AST]:
    """Whether a number is a process's says nothing of its life: the dead keep theirs until somebody reaps them."""
    yield from (node for node in nodes(module)[ast.Attribute] if node.attr == "pid_exists")
    for call in calls(module):
        if name_of(call) == "os.kill" and [ast.unparse(word) for word in call.args[1:]] == ["0"]:
            yield call


def stops_and_does_not_look(module: ast.Module) -> Iterator[ast.AST]:
    """A process that was sent SIGSTOP finishes what it is at on another processor: ``processes.halt`` sees it stopped.

    One that stops itself has stopped.
    """
    for call in calls(module):
        is_sent = name_of(call).rpartition(".")[2] in ("kill", "signal", "send_signal")
        if is_sent and [ast.unparse(word) for word in call.args if word is not call.args[-1]] != ["os.getpid()"]:
            yield from (call for word in call.args if ast.unparse(word) == "signal.SIGSTOP")


def gives_no_room(module: ast.Module) -> Iterator[ast.AST]:
    """A condition that comes true ends a wait at once: a short limit gains nothing but a red test."""
    for call in calls(module):
        first = {"eventually": 1, "pool.wait": 0}.get(name_of(call), len(call.args))
        if any(is_too_short(within, module) for within in [keyword(call, "within"), *call.args[first:]]):
            yield call


def gives_a_process_no_room(module: ast.Module) -> Iterator[ast.AST]:
    """A command takes a second to start on a busy machine, and ten where two of its kind start beside it."""
    for call in calls(module):
        name = name_of(call)
        is_of_a_process = name.startswith("subprocess.") or name.endswith((".wait", ".communicate"))
        is_a_stores = name.endswith(".wait") and bool(call.args)  # for these queues
        if is_of_a_process and not is_a_stores and is_too_short(keyword(call, "timeout"), module):
            yield call


def gives_a_test_no_room(module: ast.Module) -> Iterator[ast.AST]:
    for call in calls(module):
        if name_of(call) == ".timeout" and "mark" in ast.unparse(call.func) and is_too_short(call.args[0], module):
            yield call


def demands_speed(module: ast.Module) -> Iterator[ast.AST]:
    """That something took less than so long says more of the machine: what would be wrong takes longer than ROOM."""
    for check in nodes(module)[ast.Assert]:
        for compared in (node for node in ast.walk(check) if isinstance(node, ast.Compare)):
            if any(is_too_short(most, module) for most in limits_of_time(compared)):
                yield check


def limits_of_time(compared: ast.Compare) -> Iterator[ast.expr]:
    """What a time that has passed is to be below."""
    chain = [compared.left, *compared.comparators]
    for smaller, sign, larger in zip(chain, compared.ops, chain[1:], strict=False):
        if isinstance(sign, (ast.Gt, ast.GtE)):
            smaller, larger = larger, smaller
        if isinstance(sign, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) and is_passed_time(smaller):
            yield larger


def is_passed_time(node: ast.expr) -> bool:
    clocks = ("time.monotonic", "time.time", "time.perf_counter")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return name_of(node.left) in clocks or ast.unparse(node.left).endswith("['at']")  # of a note in the trail
    return name_of(node) in ("took", "elapsed", "lasted")


def reads_lines_that_are_being_written(module: ast.Module) -> Iterator[ast.AST]:
    """The last line of a file that another process appends to may be half: ``whole_lines``."""
    for loop in nodes(module)[ast.ListComp]:
        source = ast.unparse(loop.generators[0].iter)
        if name_of(loop.elt) == "json.loads" and source.endswith((".read_text().splitlines()", ".read_text().split()")):
            yield loop


def takes_one_thing_for_another(module: ast.Module) -> Iterator[ast.AST]:
    """Neither of the log and the trail, which jobs write, comes first: wait for what is asserted, or for the end."""
    if not all(any(is_of(call, name) for call in calls(module)) for name in EVIDENCE):
        return
    helpers: dict[str, set[str]] = {}
    for helper in nodes(module)[ast.FunctionDef]:
        helpers[helper.name] = looks_of(helper, helpers)
    for block in (each for kind in (ast.With, ast.FunctionDef, ast.For) for each in nodes(module)[kind]):
        yield from hasty(block.body, helpers)


#: methods by which a test looks
EVIDENCE = ("log", "trail")
WAITS = "eventually"


def is_of(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == name


def looks_of(step: ast.AST, helpers: dict[str, set[str]]) -> set[str]:
    """Whether it looks at the log and at the trail, and waits; also by functions of the file, which stand above it."""
    within = [node for node in ast.walk(step) if isinstance(node, ast.Call)]
    own = {name for name in EVIDENCE if any(is_of(call, name) for call in within)}
    own |= {WAITS} & {name_of(call) for call in within}
    return own.union(*(helpers.get(name_of(call), set()) for call in within))


def hasty(steps: list[ast.stmt], helpers: dict[str, set[str]]) -> Iterator[ast.AST]:
    """Those that demand something right after waits for something else."""
    waited = set[str]()
    for step in steps:
        if WAITS in (looks := looks_of(step, helpers)):
            waited |= looks if isinstance(step, (ast.Expr, ast.Assign)) else set()
            continue
        if isinstance(step, ast.Assert) and waited & {*EVIDENCE} and not is_of_nothing(step.test):
            yield from [step] if looks_of(step.test, helpers) - waited else []
        waited = set()


def is_of_nothing(test: ast.expr) -> bool:
    """Whether it demands that something has not come: a look at the wrong moment does not make that red."""
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.NotIn) or ast.unparse(test.left) in ("[]", "0", "(0, 0)")
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def hurries_an_example(module: ast.Module) -> Iterator[ast.AST]:
    """No example of hypothesis is too slow, as ``conftest.py`` says: one that is repeated is slow once."""
    for call in calls(module):
        deadline = keyword(call, "deadline")
        if name_of(call).rpartition(".")[2] in ("settings", "register_profile") and deadline is not None:
            yield from [call] if ast.unparse(deadline) != "None" else []


def demands_nothing(module: ast.Module) -> Iterator[ast.AST]:
    """A list is true whenever something is in it, whatever that is: ``all``, unless it is of those that fit."""
    for check in nodes(module)[ast.Assert]:
        if isinstance(check.test, ast.ListComp) and not any(part.ifs for part in check.test.generators):
            yield check


Rule = Callable[[ast.Module], Iterator[ast.AST]]
#: each rule, and where it does not hold
RULES: dict[Rule, dict[str, str]] = {
    looks_at_a_number: {
        "stores/contract/test_several_processes.py": "faketime looks at numbers, too",
    },
    stops_and_does_not_look: {
        "support/databases.py": "every process of the server is killed next, and seen dead",
    },
    gives_no_room: {
        "web/test_bounded_searches.py": "a search that has no time, and is no wait",
    },
    gives_a_process_no_room: {
        "support/typed_dispatches.py": "only mypy reads it",
    },
    gives_a_test_no_room: {},
    demands_speed: {},
    reads_lines_that_are_being_written: {},
    takes_one_thing_for_another: {},
    hurries_an_example: {},
    demands_nothing: {},
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_test_waits_as_one_must_not(rule: Rule):
    found = {where(path): [ast.unparse(node) for node in rule(tree(path))] for path in paths()}

    assert {} == {file: lines for file, lines in found.items() if lines and file not in RULES[rule]}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_exception_is_left_that_nothing_needs(rule: Rule):
    assert [] == [file for file in RULES[rule] if not list(rule(tree(TESTS / file)))]


WRONG: dict[Rule, str] = {
    looks_at_a_number: "assert not psutil.pid_exists(pid)",
    stops_and_does_not_look: "pool.signal(signal.SIGSTOP)",
    gives_no_room: "SOON = 2.0\neventually(lambda: True, SOON)",
    gives_a_process_no_room: "process.wait(timeout=10)",
    gives_a_test_no_room: "@pytest.mark.timeout(10)\ndef test(): ...",
    demands_speed: "QUICK = 3.0\nassert 0.5 < time.monotonic() - began < QUICK",
    reads_lines_that_are_being_written: "[json.loads(line) for line in path.read_text().splitlines()]",
    takes_one_thing_for_another: """
with site.pool() as pool:
    eventually(lambda: "job released" in pool.log())
    assert 1 == len(site.trail())
""",
    hurries_an_example: "@settings(deadline=200)\ndef test(): ...",
    demands_nothing: "assert [lease.id == 'a' for lease in leases]",
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_finds_what_it_is_for(rule: Rule):
    assert 1 == len(list(rule(ast.parse(WRONG[rule]))))
