"""The architecture: imports point downward, each danger has one door, and nothing grows too large."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from queuepool.stores.redis.scripts import script

PACKAGE = Path(__file__).parents[2] / "queuepool"

#: from the ground up: a package imports only from the rows above its own; those of one row know nothing of each other
LAYERS = [
    "errors",
    "unix",  # what the operating system does for us
    "events",
    "payload config",
    "board log stores",
    "settlement top metrics master",  # top: what an operator watches; the master leads to no store
    "jobs steward history search",  # jobs: what applications import
    "worker alerts operating",  # operating: what an operator sees and does, in whatever form
    "pool web",  # pool: the only place that knows all processes; web: the dashboard
    "cli testing",  # testing: what an application's tests import
    "contrib",  # what belongs to a framework
]

#: what may be done, and in which files alone
DOORS = {
    "os.fork": ["unix/at_fork.py", "unix/originals.py"],
    "os.register_at_fork": ["unix/at_fork.py"],
    "os.killpg": ["unix/fork.py"],
    "os.kill": ["unix/fork.py"],
    "os.waitid": ["cli/listen.py", "unix/fork.py"],
    "os.waitpid": ["unix/originals.py"],
    "os._exit": [
        "worker/attempt.py",
        "cli/__init__.py",
        "unix/at_fork.py",
        "unix/fork.py",
        "unix/signals.py",
        "worker/lane_loop.py",
    ],
    "signal.signal": ["unix/signals.py"],
    "signal.setitimer": ["unix/signals.py"],
    "signal.pthread_sigmask": ["unix/signals.py"],
    "signal.sigtimedwait": ["unix/signals.py"],
    "importlib.import_module": [
        "__init__.py",
        "contrib/django/job_modules.py",
        "pool/start.py",
        "testing/__init__.py",
        "worker/boot.py",
        "cli/verbs.py",
    ],
    "time.sleep": [
        "jobs/in_threads.py",
        "alerts/notifier.py",  # a process of its own
        "cli/listen.py",
        "cli/top.py",
        "cli/waiting.py",
        "unix/originals.py",
        "board/runtime_dir.py",
        "jobs/cancelling.py",
        "jobs/following.py",
        "web/acts/pools.py",
        "web/logins.py",
    ],
    # Where user code may have replaced it.
    "queuepool.unix.originals.sleep": [
        "board/live_stack.py",
        "steward/side_stores.py",
        "steward/leases.py",
        "pool/lone_worker.py",
        "unix/fork.py",
        "settlement/outage.py",
        "steward/loop.py",
        "stores/redis/cluster.py",
        "stores/redis/followed.py",
        "stores/redis/reassertion.py",
        "stores/sql/queue.py",
        "stores/sql/sqlite.py",
        "stores/sql/waiting.py",
        "worker/template.py",
        "worker/loop.py",
        "worker/lane_loop.py",
        "worker/step_keeper.py",
        "stores/pace.py",
    ],
    "queuepool.unix.originals.start_thread": [
        "steward/acts.py",
        "steward/side_stores.py",
        "stores/redis/followed.py",
        "worker/lane_loop.py",
    ],
    # Of the modules that user code may have changed.
    "select.poll": ["unix/originals.py"],
    "select.select": ["unix/originals.py"],
}
#: never done at all: a payload must find nothing that runs it
NEVER = ["eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.loads", "marshal.loads"]
MOST_LINES, MASTERS_LINES, FUNCTIONS_LINES = 420, 215, 40


@cache
def paths() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(tree(path))]


def where(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def dotted(path: Path) -> str:
    """``stores.redis.client``; the package itself is ``queuepool``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "queuepool"


MODULES = {dotted(path) for path in paths()}


def package_of(name: str) -> str:
    """The package of a module, as it stands in ``LAYERS``."""
    return name.partition(".")[0]


@cache
def imports(path: Path) -> set[str]:
    """Absolute names of all that is imported, also within functions; ``from a import b`` gives both."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


@cache
def ours(path: Path) -> set[str]:
    """The modules of ours that ``path`` imports; of a name that a package gives out, the package."""
    froms = [node for node in nodes(path) if isinstance(node, ast.ImportFrom)]
    pairs = [(str(node.module), f"{node.module}.{alias.name}") for node in froms for alias in node.names]
    names = [whole if whole.removeprefix("queuepool.") in MODULES else module for module, whole in pairs]
    return {name.removeprefix("queuepool.") for name in names if name.startswith("queuepool.")}


def layer_of(name: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if package_of(name) in layer.split())


def test_every_package_has_its_layer_and_nothing_else_lies_beside_them():
    entries = {"queuepool", "__main__"}

    assert sorted(" ".join(LAYERS).split()) == sorted({package_of(name) for name in MODULES - entries})


def test_the_page_draws_the_rows_in_this_order():
    page = (PACKAGE.parent / "docs/architecture.md").read_text()
    rows = [line.partition("  ")[0] for line in page.split("```text\n")[2].partition("```")[0].splitlines()]

    assert [sorted(layer.split()) for layer in reversed(LAYERS)] == [sorted(row.split()) for row in rows]


def test_no_package_imports_one_beside_or_above_it():
    inside = [path for path in paths() if dotted(path) not in ("queuepool", "__main__")]

    assert {} == {where(path): wrong for path in inside if (wrong := beside_or_above(path))}


def beside_or_above(path: Path) -> list[str]:
    """What it imports of the other packages of its own row, and of the rows above."""
    package, layer = package_of(dotted(path)), layer_of(dotted(path))
    return [name for name in ours(path) if package_of(name) != package and layer_of(name) >= layer]


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter({dotted(path): ours(path) & MODULES for path in paths()}).prepare()  # raises CycleError


@cache
def used(path: Path) -> set[str]:
    """Every name and ``module.attribute`` in the code, not in its texts."""
    found = {node.id for node in nodes(path) if isinstance(node, ast.Name)}
    attributes = (node for node in nodes(path) if isinstance(node, ast.Attribute))
    return found | {f"{node.value.id}.{node.attr}" for node in attributes if isinstance(node.value, ast.Name)}


def users(word: str) -> list[str]:
    return [where(path) for path in paths() if word in used(path) or word in imports(path)]


def test_each_danger_has_its_door():
    assert {} == {danger: files for danger, doors in DOORS.items() if (files := set(users(danger)) - set(doors))}


def test_what_must_never_be_done_is_not():
    assert {} == {danger: files for danger in NEVER if (files := users(danger))}


def test_a_client_and_its_connections_talk_to_redis_py():
    others = ("client", "cluster", "connections", "primary", "replicas", "sentinel", "sentinel_check")
    assert [f"stores/redis/{name}.py" for name in others] == users("redis")


def test_one_module_puts_the_drivers_together():
    importing = [where(path) for path in paths() if any(name.startswith("stores.redis") for name in ours(path))]

    # The first one looks at a server for a person.
    expected = ["cli/check.py", "stores/factory.py"]
    assert expected == [file for file in importing if not file.startswith("stores/redis/")]


def test_only_the_command_line_prints():
    words = ["print", "click.echo", "click.secho", "sys.stdout.write"]

    assert [] == [(file, word) for word in words for file in users(word) if not file.startswith("cli/")]


@cache
def paths_of(name: str) -> list[Path]:
    return [path for path in paths() if dotted(path) == name]


@cache
def reached(name: str) -> set[str]:
    """All that a module leads to: itself only by a circle."""
    found: set[str] = set()
    new = {name}
    while new:
        new = {other for one in new for path in paths_of(one) for other in ours(path)} - found
        found |= new
    return found


def test_the_master_leads_to_no_store_no_producer_and_no_handler():
    assert set() == {"stores", "settlement", "jobs", "worker", "steward"} & set(map(package_of, reached("master.loop")))


def test_the_web_process_leads_to_no_store_and_no_handler():
    mine = set(map(package_of, reached("pool.web_process")))

    assert set() == {"stores", "settlement", "jobs", "worker", "steward", "cli"} & mine


def test_nobody_starts_a_thread_but_a_steward_a_pushing_coroutine_a_flush_that_must_end_and_a_worker_of_many_jobs():
    threads = {"threading", "multiprocessing", "concurrent.futures", "_thread"}
    using = [where(path) for path in paths() if threads & imports(path)]

    # The log only asks in which thread it is, the invoker whether code stands where a lock is taken, and steps have
    # locks for a job's own threads. An application's test may have threads of its own, and an event loop that its jobs
    # cannot run on. The dashboard is no part of a pool: it reads stores in threads. Where a primary is, threads of a
    # producer and of a steward find out.
    in_workers = ["worker/invoker.py", "worker/lane_loop.py", "worker/lane_tasks.py"]
    of_jobs = ["jobs/attempt_steps.py", "jobs/in_threads.py", "jobs/steps_in_flight.py"]
    of_sentinels = ["stores/redis/followed.py", "stores/redis/sentinel.py"]
    assert ["contrib/otel.py", *of_jobs, "log/captured.py", *of_sentinels, "unix/originals.py", *in_workers] == [
        file for file in using if not file.startswith(("testing/", "web/"))
    ]
    assert "steward.side_stores" not in reached("master.loop")


def test_the_master_stays_small():
    assert len((PACKAGE / "master/loop.py").read_text().splitlines()) <= MASTERS_LINES


def test_no_file_grows_too_long():
    lines = {where(path): len(path.read_text().splitlines()) for path in paths()}

    assert {} == {file: count for file, count in lines.items() if count > MOST_LINES}


def test_no_class_has_the_name_of_another():
    names = [node.name for path in paths() for node in nodes(path) if isinstance(node, ast.ClassDef)]

    assert set() == {name for name in names if names.count(name) > 1}


def test_no_function_grows_too_long():
    found = [(where(path), node) for path in paths() for node in functions(path)]

    assert [] == [(file, node.name) for file, node in found if length(node) > FUNCTIONS_LINES]


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in nodes(path) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, its docstring not counted."""
    lines = (node.end_lineno or 0) - node.lineno + 1
    first = node.body[0]
    has_docstring = ast.get_docstring(node) is not None
    return lines - ((first.end_lineno or 0) - first.lineno + 1) if has_docstring else lines


def test_every_script_says_what_it_takes_and_gives():
    scripts = {path.name: path.read_text() for path in (PACKAGE / "stores/redis/lua").glob("*.lua")}
    words = ["-- Source:  ", "-- KEYS     ", "-- Returns  "]

    assert scripts
    assert [] == [name for name, text in scripts.items() if not text.startswith(f"-- {name}: ")]
    assert [] == [(name, word) for name, text in scripts.items() for word in words if word not in text]


#: what takes in something new, which a full server refuses
OF_WHAT_IS_NEW = [
    "add_members", "admit", "count_duration", "count_use", "horizon_jobs", "horizon_show", "place", "push",
    "push_limited", "push_with", "put_value", "refuse", "requeue", "retry", "retry_member", "take_lock",
]  # fmt: skip


def test_every_script_that_writes_runs_on_a_full_server_unless_it_takes_in_what_is_new():
    # Those that only read may include what writes: the viewer's role, which may not write, runs them in other tests.
    every = sorted((PACKAGE / "stores/redis/lua").glob("*.lua"))
    names = [path.stem for path in every if "-- Reads only." not in path.read_text()]
    grows = re.compile(r"call\((?:[^()']*, )?'(set|hset|hincrby|incr|rpush|lpush|zadd)'|\bput\(")
    writing = [name for name in names if grows.search(script(name)[0])]

    assert [] == [name for name in OF_WHAT_IS_NEW if name not in writing]
    assert OF_WHAT_IS_NEW == [name for name in writing if script(name)[0].count("write_nothing(") < 2]


@pytest.mark.thorough("a rule for tests, which reads all of them")
def test_only_the_helper_of_the_tests_sleeps():
    every = Path(__file__).parents[1]
    # What jobs under test do is their own affair.
    tests = [*sorted(every.rglob("test_*.py")), every / "support/eventually.py"]
    # The text first, as most have no such words, and to parse them all takes seconds.
    sleeping = [path.name for path in tests if "time.sleep" in path.read_text() and "time.sleep" in used(path)]

    assert ["eventually.py"] == sleeping
