"""How the house is built: imports point downward, each danger has one door, and nothing grows too large."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "queuepool"

#: from the ground up: a module imports only from the lines above its own. Packages named without a dot are one module.
LAYERS = [
    # facts
    "shared_file facts settings escape to_json annotations django_support",
    "json_scalars errors events record config_values config_urls",
    "from_json stores stores.unfit stores.certificates stores.redis stores.redis.scripts stores.redis.keys",
    "stores.sql stores.sql.ddl",
    "chores chores.base job_options definition",
    # edges of the system, and rulings, each on its own
    "states proc signals trusted_path strict_json terms php listeners registry verdict limits pace job_loop",
    "config_file config_variables runtime_base stores.redis.line boot_report unserved",
    "stores.sql.tidy_mysql stores.sql.sqlite stores.sql.postgresql stores.sql.troubles stores.sql.tables",
    "stores.sql.clock stores.sql.texts",
    "stores.sql.names",
    "log_stream config_secrets config_connections fork payload php_writer outage stores.redis.refusals",
    "stores.redis.client",
    "stores.base stores.set_aside stores.sql.engines stores.sql.transaction stores.sql.schema",
    # the queues
    "stores.control stores.elsewhere stores.redis.wire stores.redis.outbox stores.sql.client stores.sql.waiting",
    "stores.sql.marks stores.sql.failures",
    "stores.sql.shelf stores.sql.outbox stores.sql.failed stores.sql.migrate stores.sql.statements",
    "stores.sql.quarantine stores.sql.table",
    "stores.sql.leases",
    "stores.sql.queue",
    "config signing stores.redis.queue stores.redis.failed stores.redis.quarantine stores.redis.shelf",
    "build calls current_job failures policies hand mourning arguments",
    "slot plans module_hints about",
    "board blame boot lines requests settle side_stores",
    "log_format captured opened",
    # who does the work, and who watches
    "log client children deadlines desk membership orders overview runtime chores.unheard",
    "announce job_lines ending gate place respawn strays supply template wards",
    "chores.hand_back chores.beside chores.record_failures first_boot nursery",
    "attempt chores.guard chores.bury chores.publish chores.renew chores.stage chores.watch decorator job_class",
    "worker steward master queuepool",
    # how it comes together, and how people come in
    "worker_process",
    "roles",
    "start",
    "cli",
    "__main__",
]
WHOLE = ("events", "cli")

#: what may be done, and in which files alone
DOORS = {
    "os.fork": ["fork.py"],
    "os.killpg": ["fork.py"],
    "os.kill": ["fork.py"],
    "os.waitid": ["cli/listen.py", "fork.py"],
    "os.waitpid": ["fork.py"],
    "os._exit": ["attempt.py", "boot.py", "calls.py", "cli/__init__.py", "fork.py"],
    "signal.signal": ["signals.py"],
    "signal.setitimer": ["signals.py"],
    "signal.pthread_sigmask": ["signals.py"],
    "signal.sigtimedwait": ["signals.py"],
    "importlib.import_module": ["__init__.py", "boot.py", "cli/verbs.py"],
    "time.sleep": [
        "chores/beside.py",
        "chores/hand_back.py",
        "cli/alone.py",
        "cli/listen.py",
        "cli/pools.py",
        "fork.py",
        "outage.py",
        "runtime.py",
        "steward.py",
        "stores/sql/queue.py",
        "stores/sql/waiting.py",
        "template.py",
        "worker.py",
    ],
}
#: never done at all: a payload must find nothing that runs it
NEVER = ["eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.loads", "marshal.loads"]
MOST_LINES, MASTERS_LINES, FUNCTIONS_LINES = 230, 215, 40


def paths() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def where(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def dotted(path: Path) -> str:
    """``stores.redis.client``; the package itself is ``queuepool``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "queuepool"


MODULES = {dotted(path) for path in paths()}


def module_of(name: str) -> str:
    """The module as it stands in ``LAYERS``."""
    first = name.partition(".")[0]
    return first if first in WHOLE else name


@cache
def imports(path: Path) -> set[str]:
    """Absolute names of all that is imported, also within functions; ``from a import b`` gives both."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


@cache
def ours(path: Path) -> set[str]:
    """The modules of the package that ``path`` imports, itself left out."""
    names = {name.removeprefix("queuepool.") for name in imports(path) if name.partition(".")[0] == "queuepool"}
    found = {module_of(name) for name in names if name in MODULES}
    if "queuepool" in names and not any(f"queuepool.{name}" in imports(path) for name in MODULES):
        found.add("queuepool")
    else:
        found.discard("queuepool")
    return found - {module_of(dotted(path))}


def layer_of(name: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if name in layer.split())


def test_every_module_has_its_layer():
    listed = " ".join(LAYERS).split()

    assert sorted(listed) == sorted({module_of(name) for name in MODULES})


@pytest.mark.parametrize("path", paths(), ids=where)
def test_no_module_imports_one_beside_or_above_it(path):
    layer = layer_of(module_of(dotted(path)))

    assert [] == [name for name in ours(path) if layer_of(name) >= layer]


@cache
def used(path: Path) -> set[str]:
    """Every name and ``module.attribute`` in the code, not in its texts."""
    found = {node.id for node in ast.walk(tree(path)) if isinstance(node, ast.Name)}
    attributes = (node for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute))
    return found | {f"{node.value.id}.{node.attr}" for node in attributes if isinstance(node.value, ast.Name)}


def users(word: str) -> list[str]:
    return [where(path) for path in paths() if word in used(path) or word in imports(path)]


@pytest.mark.parametrize("danger", DOORS)
def test_each_danger_has_its_door(danger):
    assert set() == set(users(danger)) - set(DOORS[danger])


@pytest.mark.parametrize("danger", NEVER)
def test_what_must_never_be_done_is_not(danger):
    assert [] == users(danger)


def test_a_client_its_lines_and_its_refusals_talk_to_redis_py():
    assert ["stores/redis/client.py", "stores/redis/line.py", "stores/redis/refusals.py"] == users("redis")


def test_one_module_puts_the_drivers_together():
    importing = [where(path) for path in paths() if any(name.startswith("stores.redis") for name in ours(path))]

    assert ["build.py"] == [file for file in importing if not file.startswith("stores/redis/")]


@pytest.mark.parametrize("word", ["print", "click.echo", "click.secho", "sys.stdout.write"])
def test_only_the_command_line_prints(word):
    assert [] == [file for file in users(word) if not file.startswith("cli/")]


def reached(name: str) -> set[str]:
    """All that a module leads to."""
    found: set[str] = set()
    new = {name}
    while new:
        found |= new
        new = {other for path in paths() if module_of(dotted(path)) in new for other in ours(path)} - found
    return found - {name}


def test_the_master_leads_to_no_store_no_producer_and_no_handler():
    forbidden = {"client", "registry", "build", "boot", "job", "attempt", "worker", "settle"}

    assert set() == forbidden & reached("master")
    assert [] == [name for name in reached("master") if name.startswith("stores.redis")]


def test_nobody_starts_a_thread_but_a_steward_for_stores_elsewhere():
    threads = {"threading", "multiprocessing", "concurrent.futures", "_thread"}

    assert ["chores/beside.py"] == [where(path) for path in paths() if threads & imports(path)]
    assert "chores.beside" not in reached("master")


def test_the_master_stays_small():
    assert len((PACKAGE / "master.py").read_text().splitlines()) <= MASTERS_LINES


@pytest.mark.parametrize("path", paths(), ids=where)
def test_no_file_grows_too_long(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", paths(), ids=where)
def test_no_function_grows_too_long(path):
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]

    assert [] == [node.name for node in functions if length(node) > FUNCTIONS_LINES]


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, its docstring not counted."""
    lines = (node.end_lineno or 0) - node.lineno + 1
    first = node.body[0]
    has_docstring = ast.get_docstring(node) is not None
    return lines - ((first.end_lineno or 0) - first.lineno + 1) if has_docstring else lines


@pytest.mark.parametrize("path", sorted((PACKAGE / "stores/redis/lua").glob("*.lua")), ids=lambda path: path.stem)
def test_every_script_says_what_it_takes_and_gives(path):
    text = path.read_text()

    assert text.startswith(f"-- {path.name}: ")
    assert [] == [word for word in ("-- Source:  ", "-- KEYS     ", "-- Returns  ") if word not in text]


def test_only_the_helper_of_the_tests_sleeps():
    tests = sorted(Path(__file__).parent.rglob("*.py"))
    sleeping = [path.name for path in tests if "time.sleep" in used(path)]

    assert "eventually.py" in sleeping
    # What jobs under test do is their own affair.
    assert [] == [name for name in sleeping if name.startswith("test_")]
