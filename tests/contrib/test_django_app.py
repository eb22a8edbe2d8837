"""A Django project with the app: its commands, its settings as the configuration, its transactions."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip("django")

from tests.support.django_project import DATABASE, LIBRARIES, Project, migrated, project_in, settings_on
from tests.support.eventually import eventually

pytestmark = [pytest.mark.every_store("anywhere"), pytest.mark.libraries(*LIBRARIES)]

IMPORTS = """
from django.db import connection, transaction
from queuepool import connect
from shop.jobs import asend, counted, send
from shop.models import Order
size = connect().size
"""
PUSHES = """
with transaction.atomic():
    print(send.dispatch(Order.objects.create(name="kept").pk) != "", size())
print(size())
try:
    with transaction.atomic():
        send.dispatch(Order.objects.create(name="lost").pk)
        raise ValueError
except ValueError:
    print(size())
with transaction.atomic():
    try:
        with transaction.atomic():
            send.dispatch(0)
            raise ValueError
    except ValueError:
        pass
    with transaction.atomic():
        asend.later(0, Order.objects.create(name="nested").pk)
print(size())
with transaction.atomic(durable=True):
    send.bulk([{"order": Order.objects.create(name=f"bulk {number}").pk} for number in range(3)])
    print(size())
print(size())
send.dispatch(Order.objects.first().pk)
print(size())
"""
#: what it prints: a dispatch in a transaction counts at its commit, and one that was rolled back never
COUNTS = ["True 0", "1", "1", "2", "2", "5", "6"]


@pytest.fixture
def project(tmp_path) -> Project:
    """With its queue in Django's own database, an SQLite file: it says nothing of queuepool."""
    return migrated(project_in(tmp_path))


@pytest.fixture(params=["sqlite", "postgres", "mariadb", "redis"])
def anywhere(request, tmp_path) -> Project:
    """The queue in Django's database, of whatever brand, or elsewhere: in Redis."""
    made = project_in(tmp_path, **settings_on(request.param, request))
    made.manage("migrate", "--run-syncdb")
    return made


def test_a_dispatch_is_part_of_the_transaction_or_comes_at_its_commit(anywhere):
    assert COUNTS == anywhere.python(IMPORTS + PUSHES).splitlines()

    anywhere.work()

    sent = sorted(note["name"] for note in anywhere.notes())
    assert ["bulk 0", "bulk 1", "bulk 2", "kept", "kept", "nested"] == sent
    assert 0 == anywhere.size()


def test_a_dispatch_pushes_at_once_where_the_settings_say_so(project):
    project.write(DATABASES={"default": DATABASE}, QUEUEPOOL={"on_commit": False})
    lines = "with transaction.atomic():\n    send.dispatch(1)\n    print(size())"

    assert "1\n" == project.python(IMPORTS + lines)


def test_a_queue_in_another_database_waits_for_the_commit_of_the_one_that_is_watched(tmp_path):
    databases = {"default": DATABASE, "other": DATABASE | {"NAME": "other.sqlite3"}}
    project = migrated(project_in(tmp_path, DATABASES=databases, QUEUEPOOL={"connection": {"database": "other"}}))
    (tmp_path / "other.sqlite3").write_bytes((tmp_path / DATABASE["NAME"]).read_bytes())
    lines = """
with transaction.atomic():
    send.dispatch(1)
    print(size())
print(size())
with transaction.atomic(using="other"):  # it is not watched
    send.dispatch(1)
    print(size())
"""

    assert ["0", "1", "2"] == project.python(IMPORTS + lines).split()


def test_a_transaction_that_the_program_manages_itself_has_the_job_in_it(project):
    lines = """
transaction.set_autocommit(False)
send.dispatch(1)
transaction.rollback()
print(size())
send.dispatch(1)
transaction.commit()
print(size())
"""

    assert ["0", "1"] == project.python(IMPORTS + lines).split()


def test_a_dispatch_in_a_broken_transaction_is_refused_as_djangos_own_queries_are(project):
    lines = """
from django.db import IntegrityError
from queuepool.errors import StoreError
def refused():
    try:
        send.dispatch(1)
    except (StoreError, transaction.TransactionManagementError) as error:
        return type(error).__name__, "UNIQUE" in str(error)
with transaction.atomic():
    transaction.set_rollback(True)
    print(refused())
first = Order.objects.create(name="first")
with transaction.atomic():
    try:
        with transaction.atomic(savepoint=False):
            Order.objects.create(pk=first.pk, name="again")
    except IntegrityError:
        print(refused())
print(size())
"""
    refused = "('TransactionManagementError', False)"

    assert [refused, refused, "0"] == project.python(IMPORTS + lines).splitlines()


def test_a_coroutine_pushes_and_follows(project):
    lines = """
import asyncio
async def main():
    await asend.adispatch(1)
    job_id = await counted.adispatch()
    print(job_id.job().state, await asend.abulk([{"order": 1}]) != [])
asyncio.run(main())
print(size())
"""

    assert ["queued", "True", "3"] == project.python(IMPORTS + lines).split()


def test_a_coroutine_has_connections_of_its_own_and_so_pushes_at_once(project):
    lines = "import asyncio\nwith transaction.atomic():\n    asyncio.run(send.adispatch(1))\n    print(size())"

    assert "1\n" == project.python(IMPORTS + lines)


# Slow: Django boots in the pool, in its workers twice, and in each command.
def test_a_pool_is_started_and_restarted_with_new_code(project):
    with project.pool("--workers", "1"):
        eventually(lambda: "worker starting" in (project.path / "log").read_text(), within=60)
        project.python(IMPORTS + "send.dispatch(Order.objects.create(name='one').pk)")
        eventually(lambda: ["one"] == [note["name"] for note in project.notes()], within=60)
        eventually(lambda: " idle" in status(project), within=60)

        # Also what was imported by manage.py itself: the models, and a module of jobs that is new.
        models = project.path / "shop/models.py"
        models.write_text(
            models.read_text() + "\n    @property\n    def loud(self):\n        return self.name.upper()\n"
        )
        (project.path / "shop/tasks.py").write_text(
            "from queuepool import job\nfrom shop.models import Order\nfrom tests.support.poolapp import note\n\n"
            "@job\ndef shout(order: int) -> None:\n    note(event='loud', name=Order.objects.get(pk=order).loud)\n"
        )
        project.manage("queuepool", "reload", "--runtime-dir", str(project.path / "run"), "--wait", "60")
        project.python(IMPORTS + "from shop.tasks import shout\nshout.dispatch(Order.objects.get().pk)")
        eventually(lambda: "ONE" in [note["name"] for note in project.notes()], within=60)


def status(project: Project) -> str:
    return project.manage("queuepool", "status", "--runtime-dir", str(project.path / "run"), check=False).stdout


# Slow: each verb boots Django.
@pytest.mark.thorough("a pool, a call_command and a check take them in other tests of this file")
def test_every_verb_takes_the_settings(project):
    assert "nothing to do\n" == project.manage("queuepool", "migrate").stdout
    pushed = project.manage("queuepool", "push", "shop.jobs.send", "--data", '{"order": 1}').stdout
    assert 36 == len(pushed.strip())
    assert 1 == project.size()
    assert "usage" in project.manage("help", "queuepool").stdout.lower()
    assert 2 == project.manage("queuepool", "strat", check=False).returncode


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "settings without QUEUEPOOL"),
        pytest.param({"QUEUEPOOL": {}}, "settings.QUEUEPOOL", marks=pytest.mark.thorough("only the name is another")),
    ],
)
@pytest.mark.thorough("Django starts several times, for one line of each")
def test_a_check_and_a_log_say_the_same_of_the_settings(project, settings, name):
    project.write(DATABASES={"default": DATABASE}, **settings)
    checked = project.manage("queuepool", "check").stdout
    with project.pool("--workers", "1"):
        eventually(lambda: "pid:" in (project.path / "log").read_text(), within=60)

    assert f"ok   configuration: {name}, pools: default\n" in checked
    assert re.search(rf"\n    configuration: +{name}\n", (project.path / "log").read_text())


def test_several_pools_and_connections_are_sections(project, redis_url):
    project.write(
        DATABASES={"default": DATABASE},
        QUEUEPOOL={
            "connection": {"database": "default"},
            "connection:cache": {"url": redis_url},
            "pool:mail": {"queue": ["mail", "default"], "timeout": 30, "backoff": [1, 2.5], "connection": "cache"},
            "pool:web": {"connection": "default", "log_level": None, "preload": True},
        },
    )
    lines = """
from queuepool.config.loader import load
for pool in load(None).pools:
    print(pool.name, pool.connection.name, pool.queues, pool.timeout, pool.backoff, pool.preload, pool.modules)
"""

    modules = "('queuepool.contrib.django.job_modules',)"
    assert [
        f"mail cache ('mail', 'default') 30.0 (1.0, 2.5) False {modules}",
        f"web default ('default',) 60.0 (0.0,) True {modules}",
    ] == project.python(lines).splitlines()
    assert "there is no pool 'wbe', only: mail, web" in failed(project, "queuepool", "start", "--pool", "wbe")


def failed(project: Project, *words: str) -> str:
    done = project.manage(*words, check=False)
    assert done.returncode
    return done.stderr


def test_a_file_that_is_named_wins(project, redis_url):
    (project.path / "pool.ini").write_text(f"[connection]\nurl = {redis_url}\n[pool]\nmodules = shop.jobs\n")

    assert "pool.ini, pools: default" in project.manage("queuepool", "check", "-c", "pool.ini", check=False).stdout


@pytest.mark.thorough("the next test calls verbs that do and that fail, and looks at more")
def test_call_command_runs_a_verb_and_raises_where_it_fails(project):
    lines = """
from django.core.management import CommandError, call_command
call_command("queuepool", "size")
try:
    call_command("queuepool", "status")
except CommandError as error:
    print(error, error.returncode)
"""

    assert "queuepool status: exit code 3 3\n" in project.python(lines)


def test_call_command_prints_where_it_is_told_and_its_error_has_the_cause(project):
    lines = """
import io
from django.core.management import CommandError, call_command
out, err = io.StringIO(), io.StringIO()
call_command("queuepool", "size", stdout=out, stderr=err)
print("printed", out.getvalue().split()[-2:], [err.getvalue()])
try:
    call_command("queuepool", "siez", stdout=out, stderr=err)
except CommandError as error:
    print(error, error.returncode)
    print("complained", err.getvalue().startswith("queuepool: there is no 'siez'"), len(err.getvalue().splitlines()))
"""

    assert [
        "printed ['default', '0'] ['']",
        "queuepool siez: exit code 2: there is no 'siez'; did you mean 'size'? See queuepool --help 2",
        "complained True 1",
    ] == project.python(lines).splitlines()


@pytest.mark.thorough("Django starts several times; a pool of the project starts above, cli/ has the verb")
def test_listen_runs_each_job_in_a_new_interpreter_of_the_project(project):
    command = [sys.executable, "manage.py", "queuepool", "listen", "--sleep", "0.1"]
    project.python(IMPORTS + "send.dispatch(Order.objects.create(name='fresh').pk)")
    process = subprocess.Popen(command, cwd=project.path, env=project.env(), stderr=subprocess.DEVNULL)
    eventually(lambda: ["fresh"] == [note["name"] for note in project.notes()], within=60)
    process.send_signal(signal.SIGTERM)

    assert 0 == process.wait(60)


@pytest.mark.thorough("Django starts several times; a test above has its queue in another database")
def test_tables_are_made_where_a_queue_is_and_nowhere_else(tmp_path):
    databases = {"default": DATABASE, "other": DATABASE | {"NAME": "other.sqlite3"}}
    project = project_in(tmp_path, DATABASES=databases, QUEUEPOOL={"connection": {"database": "other"}})
    lines = """
from django.db import connections
for alias in ("default", "other"):
    print([name for name in connections[alias].introspection.table_names() if "job" in name or "cache" in name])
"""
    for name in (*databases, "other"):  # the last changes nothing
        project.manage("migrate", "--run-syncdb", "--database", name)

    assert ["[]", "['cache', 'cache_locks', 'failed_jobs', 'jobs']"] == project.python(lines).splitlines()


IN_A_DATABASE = """
from django.db import connection
from django.test import TestCase
from shop.jobs import send
from shop.models import Order

def jobs():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM jobs")
        return cursor.fetchone()[0]

class Jobs(TestCase):
    def test_1_a_job_is_a_row_of_the_test(self):
        assert str(connection.settings_dict["NAME"]).endswith("test.sqlite3"), connection.settings_dict
        send.dispatch(Order.objects.create(name="a").pk)
        self.assertEqual(1, jobs())

    def test_2_it_was_rolled_back(self):
        self.assertEqual(0, jobs())
"""
IN_MEMORY = """
from django.test import TestCase
from queuepool.jobs.connecting import default_queue
from shop.jobs import send

class Jobs(TestCase):
    def test_1_a_test_never_commits(self):
        send.dispatch(1)
        self.assertEqual(0, default_queue().size())

    def test_2_a_commit_can_be_captured(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            send.dispatch(1)
            self.assertEqual(0, default_queue().size())
        self.assertEqual([1, 1], [len(callbacks), default_queue().size()])
"""


def test_a_test_case_has_the_job_in_its_own_transaction(project):
    project.write(DATABASES={"default": DATABASE | {"TEST": {"NAME": str(project.path / "test.sqlite3")}}})
    (project.path / "shop/tests.py").write_text(IN_A_DATABASE)

    assert "Ran 2 tests" in project.manage("test").stderr
    assert 0 == project.size()  # of the project's own database


def test_a_test_database_in_memory_has_a_queue_in_a_temporary_file(project, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (project.path / "shop/tests.py").write_text(IN_MEMORY)

    assert "Ran 2 tests" in project.manage("test").stderr
    assert [] == list((tmp_path / "tmp").iterdir())
    assert 0 == project.size()


@pytest.mark.thorough("Django starts several times, for a line that might be there twice")
def test_what_django_logs_is_in_the_log_once(project):
    project.write(DATABASES={"default": DATABASE}, DEBUG=True)
    lines = "\n\n@job\ndef log() -> None:\n    logging.getLogger('django.shop').info('a line of Django')\n"
    with (project.path / "shop/jobs.py").open("a") as file:
        file.write("import logging" + lines)
    project.python("from shop.jobs import log\nlog.dispatch()")
    done = project.manage("queuepool", "work", "--stop-when-empty")

    assert 1 == (done.stdout + done.stderr).count("a line of Django")


def test_a_project_without_the_tables_is_told_its_own_command(tmp_path):
    project = project_in(tmp_path)
    (tmp_path / "site.sqlite3").touch()
    words = "has no table jobs: run `python manage.py queuepool migrate`"

    assert words in project.manage("queuepool", "size", check=False).stderr


BESIDE = """
import threading
from asgiref.sync import sync_to_async
from django.db import connection, connections
from queuepool import job
from tests.support.poolapp import note

meeting, kept = threading.Barrier(2), []

@job
async def meets() -> None:
    await sync_to_async(meet)()

def meet() -> None:
    connection.ensure_connection()
    kept.append(connections["default"])
    meeting.wait(20)
    note(event="met")

@job
async def looks() -> None:
    note(event="looked", closed=[one.connection is None for one in kept])
"""


def test_jobs_side_by_side_do_not_wait_for_each_others_queries_and_close_their_connections(project):
    (project.path / "shop/beside.py").write_text(BESIDE)
    project.python("from shop.beside import meets; meets.dispatch(); meets.dispatch()")
    with project.pool("--workers", "1", "--concurrency", "10", "--modules", "shop.beside"):
        done = r"job done .* job=shop\.beside\.meets "  # by then their connections are closed; their note is earlier
        eventually(lambda: 2 == len(re.findall(done, (project.path / "log").read_text())), within=60)
        project.python("from shop.beside import looks; looks.dispatch()")
        looked = eventually(lambda: [note for note in project.notes() if note["event"] == "looked"])

    assert [True, True] == looked[0]["closed"]
