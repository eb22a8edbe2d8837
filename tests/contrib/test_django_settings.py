"""``QUEUEPOOL`` in Django's settings, and what it says of ``DATABASES``: one line for whatever is wrong."""

from __future__ import annotations

import json
import os
import sys

import pytest

pytest.importorskip("django")

from tests.support import warm
from tests.support.django_project import LIBRARIES, ROOT

pytestmark = pytest.mark.libraries(*LIBRARIES)

#: reads one set of settings after another: each line of its input is one
PROGRAM = """
import json, sys
import django, pymysql

pymysql.version_info = (2, 2, 7, "final", 0)  # it stands in for mysqlclient, of which Django asks that version
pymysql.install_as_MySQLdb()
from django.conf import settings

first, *others = [json.loads(line) for line in sys.stdin]
settings.configure(INSTALLED_APPS=["queuepool.contrib.django"], **first)
django.setup()
from django.db import connections
from django.test.utils import override_settings
from queuepool.config.loader import load
from queuepool.contrib.django.apps import check_settings

def show(given):
    connections.__dict__.pop("settings", None)
    connections._settings = given["DATABASES"]
    for alias in list(given["DATABASES"]):
        if hasattr(connections._connections, alias):
            delattr(connections._connections, alias)
    problems = [error.msg for error in check_settings()]
    urls = [] if problems else [one.url for one in load(None).connections.values()]
    print(json.dumps(problems or urls))

for given in [first, *others]:
    with override_settings(**given):
        show(given)
"""
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "/srv/site.sqlite3"}
SERVER = {"NAME": "shop", "USER": "me", "PASSWORD": "a/b:c@d", "HOST": "db.example", "PORT": "5433"}
POSTGRES = {"ENGINE": "django.db.backends.postgresql", **SERVER}
MYSQL = {"ENGINE": "django.db.backends.mysql", **SERVER, "PORT": ""}
LOGIN = "me:a%2Fb%3Ac%40d"


def read(*cases: dict) -> list[list[str]]:
    """The problems of each, or the URLs of its connections."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("QUEUEPOOL")}
    done = warm.run(
        [sys.executable, "-c", PROGRAM], input="\n".join(map(json.dumps, cases)), env=env | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def case(queuepool=None, **default) -> dict:
    """Settings with one database; ``default`` is what its entry says."""
    found = {"DATABASES": {"default": default or SQLITE}}
    return found if queuepool is None else found | {"QUEUEPOOL": queuepool}


def test_a_queue_is_in_one_of_djangos_databases():
    tls = {"OPTIONS": {"sslmode": "verify-full", "connect_timeout": 5, "pool": True, "options": "-c search_path=x"}}

    assert [
        ["sqlite:////srv/site.sqlite3"],
        [f"postgresql://{LOGIN}@db.example:5433/shop"],
        [f"postgresql://{LOGIN}@db.example:5433/shop?sslmode=verify-full&options=-c%20search_path%3Dx"],
        ["postgresql://me@:5433/shop?host=/var/run/postgresql"],
        [f"postgresql://{LOGIN}@[::1]:5433/shop"],
        [f"postgresql://{LOGIN}@db1:5433,db2:5433/shop?target_session_attrs=read-write"],
        ["redis://127.0.0.1:6379/0"],
        ["redis+sentinel://s1,s2,s3/jobs/0"],
    ] == read(
        case(),
        case({}, **POSTGRES),
        case({"connection": {"retry_after": 30}}, **POSTGRES, **tls),
        case({}, **POSTGRES | {"HOST": "/var/run/postgresql", "PASSWORD": ""}),
        case({}, **POSTGRES | {"HOST": "::1"}),
        case({}, **POSTGRES | {"HOST": "db1,db2"}, OPTIONS={"target_session_attrs": "read-write"}),
        case({"connection": {"driver": "redis"}}),
        case({"connection": {"url": ["redis+sentinel://s1", "s2", "s3/jobs/0"]}}),
    )


def test_an_option_without_a_value_means_what_it_means_to_the_driver():
    """``prepare_threshold: None`` is what one sets before PgBouncer; Django's own defaults are ``None``, too."""
    options = {"prepare_threshold": None, "sslcert": None, "keepalives": True}

    assert [[f"postgresql://{LOGIN}@db.example:5433/shop?prepare_threshold=none&keepalives=1"]] == read(
        case({}, **POSTGRES, OPTIONS=options)
    )


def test_a_name_of_sqlites_may_be_a_uri():
    begin = "settings.QUEUEPOOL['connection']['database']: DATABASES['default']"
    end = ": give the queue a url instead"

    assert [
        ["sqlite:////srv/u.db"],
        ["sqlite:////srv/a%20b%3F.db"],
        ["sqlite:////srv/u.db"],
        [f"sqlite:///{os.getcwd()}/u.db"],
        [f"{begin} has a NAME with 'mode=ro', which a URL cannot express{end}"],
        [f"{begin} has a NAME with a host, but the file must be on this one{end}"],
    ] == read(
        case({}, **SQLITE | {"NAME": "file:/srv/u.db?mode=rwc"}, OPTIONS={"uri": True}),
        case({}, **SQLITE | {"NAME": "file:///srv/a%20b%3F.db?cache=private"}),
        case({}, **SQLITE | {"NAME": "file://localhost/srv/u.db"}),
        case({}, **SQLITE | {"NAME": "file:u.db"}),
        case({}, **SQLITE | {"NAME": "file:/srv/u.db?mode=ro"}),
        case({}, **SQLITE | {"NAME": "file://elsewhere/srv/u.db"}),
    )


def test_the_options_of_mysql_are_those_of_its_url():
    assert [
        [f"mysql://{LOGIN}@db.example/shop"],
        [f"mysql://{LOGIN}@/shop?unix_socket=/run/mysqld/mysqld.sock"],
        [f"mysql://{LOGIN}@/shop?unix_socket=/run/m.sock"],
        ["settings.QUEUEPOOL['connection']['database']: DATABASES['default'] has the option 'read_default_file', which "
         "a URL cannot express: give the queue a url instead"],
    ] == read(
        case({}, **MYSQL, OPTIONS={"charset": "utf8mb4", "init_command": "SET x = 1", "isolation_level": None}),
        case({}, **MYSQL | {"HOST": "/run/mysqld/mysqld.sock"}),
        case({}, **MYSQL, OPTIONS={"unix_socket": "/run/m.sock"}),
        case({}, **MYSQL, OPTIONS={"read_default_file": "/etc/my.cnf"}),
    )  # fmt: skip


@pytest.mark.bad_input("B133")
def test_a_wrong_setting_is_one_line():
    wrong = {
        "pool": {"wrokers": 2, "timeout": "long", "queue": {}, "tries": -1},
        "conection": {},
        "connection": {"databse": "default"},
        "pool:mail": 4,
    }
    place = "settings.QUEUEPOOL"

    assert [
        [
            f"{place}['pool:mail']: must be a dict of sections, {{'connection': {{...}}, 'pool': {{...}}}}",
            f"{place}['pool']['wrokers']: unknown key; did you mean 'workers'?",
            f"{place}['pool']['timeout']: 'long' is not a time: write seconds (60, 0.5), or a unit: 60s, 2m, 1h, 1d",
            f"{place}['pool']['queue']: is a dict, not a text, a number, True or False, or a list of them",
            f"{place}['pool']['tries']: '-1' is not a whole number from 0 to 999999999",
            f"{place}['conection']: unknown section; did you mean [connection]?",
            f"{place}['connection']['databse']: unknown key; did you mean 'database'?",
        ],
        [f"{place}: must be a dict of sections, {{'connection': {{...}}, 'pool': {{...}}}}"],
        [f"{place}['connection']['database']: contradicts url: the queue is in one place"],
        [f"{place}['connection']['database']: 'defualt' is not in DATABASES; did you mean 'default'?"],
        [f"{place}['on_commit']: 'defualt' is not in DATABASES; did you mean 'default'?"],
        [f"{place}['on_commit']: must be True, False or a name in DATABASES, not 1"],
    ] == read(
        case(wrong),
        case([]),
        case({"connection": {"database": "default", "url": "redis://127.0.0.1"}}),
        case({"connection": {"database": "defualt"}}),
        case({"on_commit": "defualt"}),
        case({"on_commit": 1}),
    )


@pytest.mark.bad_input("B134")
def test_a_database_that_no_url_leads_to_is_named():
    place = "settings.QUEUEPOOL['connection']"
    begin, end = f"{place}['database']: DATABASES['default']", ": give the queue a url instead"

    assert [
        [f"{begin} has no HOST: write the path of the socket, as '/var/run/postgresql', or a host{end}"],
        [f"{begin} has the option 'service', which a URL cannot express{end}"],
        [f"{begin} has the option 'assume_role', which a URL cannot express{end}"],
        [f"{begin} is of unknown, but a queue needs SQLite, PostgreSQL or MySQL"],
        [f"{begin} has not as many ports as hosts{end}"],
        [f"{place}['database']: names several hosts, and this driver takes one: give a name that leads to the primary"],
        [
            f"{place}['url']: names several servers: write redis+sentinel://HOST,HOST/NAME/0 or redis+cluster://HOST,HOST/"
        ],
        [f"{place}['sentinels']: unknown key; did you mean 'url'?"],
    ] == read(
        case({}, **POSTGRES | {"HOST": ""}),
        case({}, **POSTGRES, OPTIONS={"service": "shop"}),
        case({}, **POSTGRES, OPTIONS={"assume_role": "writer"}),
        case({}, ENGINE="django.db.backends.dummy"),
        case({}, **POSTGRES | {"HOST": "db1,db2", "PORT": "1,2,3"}),
        case({}, **MYSQL | {"HOST": "db1,db2"}),
        case({"connection": {"url": ["redis://h1:6379/0", "redis://h2:6379/0"]}}),
        case({"connection": {"sentinels": ["h1"], "driver": "redis"}}),
    )


def test_a_value_stands_for_itself():
    """Not for a variable, as in a file: Python has ``os.environ``."""
    [[url]] = read(case({}, **POSTGRES | {"PASSWORD": "${HOME}"}))

    assert "me:%24%7BHOME%7D@" in url
    assert [["redis://u:$%7BHOME%7D@h/0"]] == read(case({"connection": {"url": "redis://u:${HOME}@h/0"}}))
