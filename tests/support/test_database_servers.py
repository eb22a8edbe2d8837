"""The tests' database servers are real and recent, empty for each test, and end with their starter."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from tests.support.databases import MariaDB, Postgres, running
from tests.support.eventually import eventually
from tests.support.pools import is_gone

pytestmark = pytest.mark.every_store("server", "own", "brand")

SERVERS = ["postgres", "mariadb"]
ROOT = Path(__file__).parents[2]
_LEFT_ALONE = """
import os, signal, sys
from tests.support import databases
with databases.running(getattr(databases, sys.argv[1])) as server:
    print(server.process.pid, server.brand.folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=SERVERS)
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=SERVERS)
def own(request):
    return request.getfixturevalue(f"own_{request.param}")


def query(server, url, *lines):
    """The rows of the last line, committed."""
    with server.engine(url).begin() as connection:
        *_, rows = [connection.execute(text(line)) for line in lines]
        return [tuple(row) for row in rows] if rows.returns_rows else []


@pytest.mark.parametrize(("name", "oldest"), [("postgres", (12,)), ("mariadb", (10, 6))])
def test_a_server_is_as_new_as_we_support(name, oldest, request):
    server, url = (request.getfixturevalue(fixture) for fixture in (name, f"{name}_url"))

    with server.engine(url).connect() as connection:
        assert oldest <= connection.dialect.server_version_info


def test_each_test_has_a_database_of_its_own(server):
    with server.database() as one, server.database() as other:
        query(server, one, "CREATE TABLE jobs (id INT)")

        assert ["jobs"] == inspect(server.engine(one)).get_table_names()
        assert [] == inspect(server.engine(other)).get_table_names()


@pytest.mark.parametrize("turn", ["first", "second"])
@pytest.mark.parametrize("name", SERVERS)
def test_the_database_of_a_test_is_empty(name, turn, request):
    server, url = (request.getfixturevalue(fixture) for fixture in (name, f"{name}_url"))

    assert [] == inspect(server.engine(url)).get_table_names()

    query(server, url, "CREATE TABLE jobs (id INT)")


def test_tables_are_used_again_without_their_rows_and_number_from_one(server):
    row = "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('a', 'b', 0, 0, 0)"
    for _ in range(2):
        with server.tables() as url:
            assert [(1,)] == query(server, url, row, "SELECT id FROM jobs")


@pytest.mark.by_turns("line")
@pytest.mark.parametrize("line", ["ALTER TABLE jobs ADD more INT", "DROP TABLE cache", "CREATE TABLE orders (id INT)"])
def test_tables_that_a_test_has_altered_are_not_used_again(server, line):
    with server.tables() as url:
        made = query(server, url, server.brand.shape(url.partition("?")[0].rpartition("/")[2]))
        query(server, url, line)
    with server.tables() as url:
        assert made == query(server, url, server.brand.shape(url.partition("?")[0].rpartition("/")[2]))


def test_the_sqlite_file_of_a_test_does_not_exist_yet(sqlite_url):
    assert not Path(sqlite_url.removeprefix("sqlite:///")).exists()


def test_whoever_holds_a_database_that_is_emptied_loses_the_connection(server):
    with server.database() as url:
        query(server, url, "CREATE TABLE jobs (id INT)")
        holder = server.engine(url).connect()
        holder.execute(text("INSERT INTO jobs VALUES (7)"))

    with pytest.raises(OperationalError):
        holder.execute(text("SELECT 1"))
    holder.close()


def test_a_text_may_hold_every_character(server):
    with server.database() as url:
        query(server, url, "CREATE TABLE texts (content TEXT)", "INSERT INTO texts VALUES ('é😀')")

        assert [("é😀",)] == query(server, url, "SELECT content FROM texts")


@pytest.mark.thorough("of the tests' own machinery: tests/faults starts servers again")
@pytest.mark.by_turns("end")
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_was_committed_outlives_the_server(own, end):
    query(own, own.url, "CREATE TABLE jobs (id INT)", "INSERT INTO jobs VALUES (7)")
    with own.engine(own.url).connect() as unfinished:
        unfinished.execute(text("INSERT INTO jobs VALUES (8)"))
        getattr(own, end)()
        own.start()
        unfinished.invalidate()

    assert [(7,)] == query(own, own.url, "SELECT id FROM jobs")


def test_no_server_listens_on_a_port(server):
    assert [] == psutil.Process(server.process.pid).net_connections("inet")


@pytest.mark.parametrize("brand", [Postgres, MariaDB])
def test_a_server_can_be_durable(brand):
    question = {Postgres: "SHOW fsync", MariaDB: "SELECT @@innodb_flush_log_at_trx_commit"}[brand]
    with running(brand, durable=True) as server:
        assert [(1 if brand is MariaDB else "on",)] == query(server, server.url, question)


@pytest.mark.thorough("of the tests' own machinery: a whole server to be killed")
@pytest.mark.parametrize("brand", ["Postgres", "MariaDB"])
def test_a_server_ends_with_who_started_it(brand):
    starter = subprocess.Popen([sys.executable, "-c", _LEFT_ALONE, brand], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pid, folder = starter.communicate()[0].split()
    eventually(lambda: is_gone(int(pid)))
    shutil.rmtree(folder)

    assert -signal.SIGKILL == starter.returncode
