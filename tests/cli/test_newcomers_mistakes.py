"""A newcomer's mistakes, typed as a newcomer types them: each gets one clear line that says what to do."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.commands import ROOT, Done

JOB = "from queuepool import job\n@job\ndef work() -> None: ...\n"
FILES = {
    "jobs.py": JOB,
    "src/shop/__init__.py": "",
    "src/shop/tasks.py": JOB,
    "raises.py": "raise KeyError('SHOP')\n",
    "syntax.py": "def (\n",
    "leaves.py": "import sys\nsys.exit(3)\n",
    "empty.py": "x = 1\n",
    "shop.ini": "[connection]\nurl = sqlite:///of shop.db\njobs_table = shop_jobs\n",
    "dispatches.py": "import jobs, queuepool\nqueuepool.configure('sqlite:///dispatched.db')\njobs.work.dispatch()\n",
    "nohandle.py": "from queuepool import Job, job\nclass A(Job):\n    x: int\n",
    "some.py": "from nohandle import A\n" + JOB,
}
#: nothing listens there: what is refused is refused before a store is asked
NOWHERE = "redis://127.0.0.1:1"

#: it goes on after each of its mistakes
PROGRAM = """
import datetime
from queuepool import Job, job

def attempt(name, mistake):
    try:
        mistake()
    except Exception as error:
        print(f"{name}: {error}")

class Mail(Job):
    to: str

class Shop:
    def sell(self, order): ...

def lines():
    yield 1

@job
def work(day=None): ...

attempt("a lambda", lambda: job(lambda: None))
attempt("a method", lambda: job(Shop.sell))
attempt("a generator", lambda: job(lines))
attempt("no handle", lambda: Mail("a").dispatch())
attempt("an option", lambda: job(retries=3))
attempt("two queues", lambda: job(queue="a,b")(lines))
attempt("a timeout", lambda: job(timeout="soon")(print))
attempt("a delay", lambda: work.later("five minutes"))
attempt("an argument", lambda: work.dispatch(day=Shop()))
attempt("its name", lambda: work.dispatch(dya=1))
"""
ANSWERS = {
    "a lambda": '@job: a lambda has no name: give it one: @job("shop.send")',
    "a method": "@job: 'Shop.sell' is a method, and a worker has no object to call it on: write a Job class",
    "a generator": "@job: 'lines' is a generator: calling it would do nothing",
    "no handle": "mistakes.Mail has no handle()",
    "an option": "@job: there is no option 'retries': did you mean 'tries'?",
    "two queues": "@job: queue: 'a,b' is not a queue name: 1 to 200 of A-Z a-z 0-9 _ . { } : -",
    "a timeout": "@job: timeout: 'soon' is not a time: write seconds (60, 0.5), or a unit: 60s, 2m, 1h, 1d",
    "a delay": "mistakes.work: 'five minutes' is not a time: write seconds (60, 0.5), or a unit: 60s, 2m, 1h, 1d",
    "an argument": "argument 'day' of mistakes.work: no JSON for __main__.Shop: "
    "tell queuepool.register_type how to send it",
    "its name": "mistakes.work: got an unexpected keyword argument 'dya'",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as somebody may have it who begins."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def typed(project: Path, *words: str, **env: str) -> Done:
    """The command as it is installed: with ``python -m`` the directory would come before Python's own modules."""
    command = [sys.executable, str(Path(sys.executable).with_name("queuepool")), *words]
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("QUEUEPOOL_") and key != "PYTHONPATH"
    }
    return warm.run(command, cwd=project, env=inherited | env, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(
    ("module", "answer"),
    [
        ("jbos", "cannot import jbos: there is no jbos in {here} (the working directory), and PYTHONPATH is not set; "
                 "did you mean jobs?"),
        ("jobs.py", "jobs ({here}/jobs.py) is a module, not a package; say jobs, without .py"),
        ("src/shop/tasks", "'src/shop/tasks' is not a module's name like app.jobs"),
        ("shop.tasks", "it is in {here}/src: set PYTHONPATH=src, or pip install -e . if it is a project"),
        ("raises", "cannot import raises: KeyError: 'SHOP'"),
        ("syntax", "cannot import syntax: SyntaxError: invalid syntax (syntax.py, line 1)"),
        ("leaves", "what a module runs as a program belongs under if __name__ == '__main__'"),
        ("empty", "no job is registered by empty ({here}/empty.py): is @job missing"),
        ("nohandle", "no job is registered by nohandle ({here}/nohandle.py): nohandle.A has no handle()"),
    ],
)  # fmt: skip
def test_a_module_that_is_none_is_answered_with_what_to_do(project, module, answer):
    done = typed(project, "check", "--url", NOWHERE, "--modules", module)

    assert 0 != done.returncode
    assert 1 == (done.stdout + done.stderr).count(answer.format(here=project))


@pytest.mark.thorough("one more answer beside the nine of the test before it")
def test_a_module_with_the_name_of_one_of_pythons_is_answered_with_what_to_do(tmp_path):
    (tmp_path / "calendar.py").write_text(JOB)
    done = typed(tmp_path, "check", "--url", NOWHERE, "--modules", "calendar")

    assert f"not {tmp_path}/calendar.py: give yours another name" in done.stdout + done.stderr


@pytest.mark.thorough("unit/test_classes_without_handle.py has each of its answers")
@pytest.mark.parametrize("modules", ["nohandle", "some"])
def test_a_push_of_a_class_without_handle_is_answered_with_what_it_lacks(project, modules):
    done = typed(project, "push", "nohandle.A", "--url", NOWHERE, "--modules", modules)

    assert 2 == done.returncode
    assert done.stderr.startswith("queuepool push: nohandle.A has no handle(); see ")


@pytest.mark.thorough("test_database_urls.py translates each of them")
@pytest.mark.parametrize("url", ["postgres://u:p@host.invalid/db", "postgresql+psycopg://u:p@host.invalid/db"])
def test_the_urls_that_others_give_out_are_understood(project, url):
    done = typed(project, "size", "--url", url)

    assert 1 == done.returncode
    assert done.stderr.startswith("queuepool: the store cannot be reached or cannot serve now: ")
    assert "host.invalid" in done.stderr


def test_a_variable_in_a_configuration_is_put_in_or_asked_for(project):
    path = project / "pool.ini"
    path.write_text("[connection]\nurl = redis://:${SHOPS_PASSWORD}@127.0.0.1:1\n")
    path.chmod(0o600)

    without = typed(project, "size", "-c", "pool.ini")
    assert 78 == without.returncode
    assert "pool.ini:2: [connection] url: the environment variable SHOPS_PASSWORD is not set" in without.stderr
    assert 1 == typed(project, "size", "-c", "pool.ini", SHOPS_PASSWORD="x").returncode


@pytest.mark.thorough("unit/test_job_definitions.py and unit/test_wrong_calls.py have each answer")
def test_a_program_of_ten_mistakes_is_answered_ten_times(project):
    (project / "mistakes.py").write_text(PROGRAM)
    env = {"PYTHONPATH": str(ROOT)}
    done = warm.run([sys.executable, "-m", "mistakes"], cwd=project, env=env, capture_output=True, text=True)

    assert ANSWERS == dict(line.split(": ", 1) for line in done.stdout.splitlines())


def advised(done: Done) -> list[str]:
    """The one command that an answer advises."""
    [command] = re.findall("`(queuepool migrate.*?)`", done.stdout + done.stderr)
    return shlex.split(command)[1:]


GREETS = "from queuepool import job\n@job(queue='mails')\ndef hello(name: str) -> None: ...\n"


def test_a_push_without_modules_looks_into_the_module_that_the_job_names(tmp_path):
    (tmp_path / "greets.py").write_text(GREETS)
    answers = {
        ("greets.hello",): "bad arguments for greets.hello: missing a required argument: 'name'",
        ("greets.helo",): "no job is registered as 'greets.helo'",
        ("greets.helo", "--data", "{}"): "did you mean 'greets.hello'?",
        ("greets.hello", "--data", '{"nam": 1}'): "got an unexpected keyword argument 'nam': did you mean 'name'?",
    }
    for words, answer in answers.items():
        done = typed(tmp_path, "push", *words)
        assert (2, "") == (done.returncode, done.stdout)
        assert answer in done.stderr

    assert 0 == typed(tmp_path, "push", "greets.hello", "--data", '{"name": "Ada"}').returncode
    assert {"default": "0", "mails": "1"} == dict(
        line.split() for line in typed(tmp_path, "size").stdout.splitlines()[1:]
    )


@pytest.mark.by_turns("name", "why")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("other.service.send", "cannot import other.service: there is no other in "),
        ("send", "its name contains none"),
        ("json.dumps", "json registers no job"),
        ("raises.work", "cannot import raises: KeyError: 'SHOP'"),
    ],
)
def test_a_push_of_a_job_that_cannot_be_looked_at_says_so(project, name, why):
    typed(project, "migrate", "--url", "sqlite:///pushed.db")
    done = typed(project, "push", name, "--url", "sqlite:///pushed.db")

    assert 0 == done.returncode
    assert f"note: {name} is not checked: no modules are named (--modules), and {why}" in done.stderr
    assert "note" not in typed(project, "push", name, "--url", "sqlite:///pushed.db", "--force").stderr


@pytest.mark.by_turns("flags", "variables")
@pytest.mark.by_turns("verb")
@pytest.mark.parametrize(
    ("flags", "variables"),
    [
        (["--url", "sqlite:///y.db"], {}),
        (["--url", "sqlite:///in a file.db"], {}),
        (["-c", "shop.ini"], {}),
        (["-c", "shop.ini", "--url", "sqlite:///z.db"], {}),
        ([], {"QUEUEPOOL_CONFIG": "shop.ini", "QUEUEPOOL_CONNECTION_URL": "sqlite:///c.db"}),
        ([], {"QUEUEPOOL_CONNECTION_URL": "sqlite:///e.db"}),
    ],
)
@pytest.mark.parametrize("verb", [["push", "jobs.work"], ["check", "--modules", "jobs"]])
def test_the_command_that_is_advised_for_a_missing_file_makes_it(tmp_path, flags, variables, verb):
    for name in ("jobs.py", "shop.ini"):
        (tmp_path / name).write_text(FILES[name])
    before = typed(tmp_path, *verb, *flags, **variables)
    made = typed(tmp_path, *advised(before), **variables)
    after = typed(tmp_path, *verb, *flags, **variables)

    assert (1, 0, 0) == (before.returncode, made.returncode, after.returncode), before.stderr + after.stdout
    assert "there is no file" in before.stdout + before.stderr


def test_the_command_that_is_advised_for_a_missing_table_makes_it(tmp_path):
    (tmp_path / "shop.ini").write_text(FILES["shop.ini"])
    with closing(sqlite3.connect(tmp_path / "of shop.db")) as shop:
        shop.execute("CREATE TABLE orders (id INT)")
    before = typed(tmp_path, "push", "work", "-c", "shop.ini")

    assert ["migrate", "-c", "shop.ini"] == advised(before)
    assert "has no table shop_jobs" in before.stderr
    assert (0, 0) == (
        typed(tmp_path, *advised(before)).returncode,
        typed(tmp_path, "size", "-c", "shop.ini").returncode,
    )


@pytest.mark.thorough("the two tests before it follow the same advice of a command")
def test_a_program_that_names_its_queue_by_url_is_advised_with_that_url(project):
    env = {"PYTHONPATH": str(ROOT)}
    done = warm.run([sys.executable, "-m", "dispatches"], cwd=project, env=env, capture_output=True, text=True)

    assert ["migrate", "--url", "sqlite:///dispatched.db"] == advised(done)
