"""Database URLs and their settings: which are accepted, which are refused, and how they are shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pytest

from queuepool.config.loader import load, masked
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import database_of, has_password, place_of
from queuepool.errors import ConfigError
from tests.support.each import each

ROOT = Path(__file__).parents[2]
SECRET = "s3cr3t"
BARE = ("redis", "hiredis", "psutil", "setproctitle", "click", "sqlalchemy", "typing-extensions")
#: what redis needs up to Python 3.11.2
OF_REDIS = "async-timeout"


def connection(**said: str) -> ConnectionSettings:
    """What flags alone give."""
    return load(None, {f"connection.{key}": value for key, value in said.items()}, {}).connections["default"]


def refusal(**said: str) -> str:
    with pytest.raises(ConfigError) as caught:
        connection(**said)
    return str(caught.value)


# URLs


@each(
    "url",
    [
        "sqlite:////srv/queue.db",
        "postgresql://h/d",
        "postgresql://u:p%40ss%2F@h:5432/d",
        "postgresql://[::1]:5432/d",
        "postgresql://u@/d?host=/run/postgresql",
        "postgresql://u@:5433/d?host=/run/postgresql",
        "postgresql://u:p@h/d?sslmode=verify-full&sslrootcert=system",
        "postgresql://u:p@h/d?prepare_threshold=none&target_session_attrs=read-write&keepalives_idle=5",
        "postgresql://u:p@h/d?options=-csearch_path%3Dapp&application_name=my%20shop",
        "postgresql://u:p@h1:5432,h2/d?target_session_attrs=primary",
        "mysql://u:a+b@h/d",
        "mariadb://u@localhost/my-d%20b?unix_socket=/run/mysqld/mysqld.sock",
        "mysql://u@/d?unix_socket=/run/mysqld/mysqld.sock",
    ],
)
def test_a_good_url_is_kept_as_it_is(url):
    assert url == connection(url=url).url


@each(
    ("path", "named"),
    [
        ("queue.db", "queue.db"),
        ("./a/queue.db", "a/queue.db"),
        ("a b#c.db", "a b#c.db"),
        ("a%20b.db", "a b.db"),
        ("a%3Fb%25.db", "a?b%.db"),
        ("u:p@h.db", "u:p@h.db"),
        ("ü.db", "ü.db"),
    ],
)
def test_a_relative_path_begins_in_the_working_directory(tmp_path, monkeypatch, path, named):
    monkeypatch.chdir(tmp_path)
    url = connection(url=f"sqlite:///{path}").url

    assert url.startswith(f"sqlite:///{tmp_path}/")
    assert str(tmp_path / named) == database_of(url)


def test_a_working_directory_of_any_characters_has_its_queue(tmp_path, monkeypatch):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a?b #%41\xff"))
    odd.mkdir()
    monkeypatch.chdir(odd)

    assert str(odd / "queuepool.db") == database_of(connection().url)


@each(
    "password",
    ["a%%b", "a#b", "a;b", "a ;b", "a #b", "a=b", "a\"b'c", "a b", "pässwörd", "[x]", "a:b", "a+b", "%40%2F"],
)
def test_a_password_is_what_was_written(tmp_path, password):
    from urllib.parse import unquote

    from sqlalchemy import make_url

    path = tmp_path / "pool.ini"
    path.write_text(f"[connection]\nurl = postgresql://u:{password}@h:1/d\n")
    path.chmod(0o600)
    found = make_url(load(path, {}, {}).connections["default"].url)

    assert ("u", unquote(password), "h", 1, "d") == (
        found.username, found.password, found.host, found.port, found.database,
    )  # fmt: skip


@each(
    "query",
    ["host=h1:5433,h2", "host=h1%3A5433%2Ch2", "host=h1:5433&host=h2", "sslmode=require&host=h1:5433,h2"],
)
def test_hosts_as_libpq_takes_them_are_written_before_the_database(query):
    found = connection(url=f"postgresql://u:{SECRET}@/d?{query}").url

    assert f"postgresql://u:{SECRET}@h1:5433,h2/d" == found.partition("?")[0]
    assert "postgresql://***@h1:5433,h2/d" == masked(found).partition("?")[0]
    assert place_of("postgresql://h2:5432,h1:5433/d") == place_of(found)


BAD_URLS = [
    (f"postgresql://u:{SECRET}@/d?host=h1,h1:5432", "names a host twice"),
    (f"postgresql://u:{SECRET}@h1,,h2/d", "has an empty host"),
    (f"postgresql://u:{SECRET}@h1/d?host=h2", "give all of them in one place"),
    (f"postgresql://u:{SECRET}@h1,h2/d?host=/run/postgresql", "hosts and a socket"),
    (f"postgresql://u:{SECRET}@h1,h2/d?target_session_attrs=any", "may lead to a standby"),
    (f"postgresql://u:{SECRET}@h1/d?target_session_attrs=standby", "no job can be written"),
    (f"mariadb://u:{SECRET}@h1,h2/d", "a name that leads to the primary"),
    ("sqlite:///x.db?host=h1,h2", "takes no options"),
    ("sqlite://", "names no file"),
    ("sqlite:///", "names no file"),
    ("sqlite:///:memory:", "a queue in memory ends with its process"),
    ("sqlite:///file:x?mode=memory", "names no file"),
    (f"sqlite://u:{SECRET}@h/x.db", "write sqlite:///PATH"),
    ("sqlite:///x.db?timeout=5", "takes no options"),
    ("sqlite:///folder/", "is not the path of a file"),
    ("sqlite:///a%00b", "is not the path of a file"),
    (f"postgres+psycopg://u:{SECRET}@h/d", "must begin with"),
    (f"oracle+psycopg://u:{SECRET}@h/d", "must begin with"),
    (f"POSTGRESQL://u:{SECRET}@h/d", "must begin with"),
    (f"oracle://u:{SECRET}@h/d", "must begin with"),
    (f"postgresql://u:{SECRET}@h", "names no database"),
    (f"postgresql://u:{SECRET}@h/", "names no database"),
    (f"mysql://u:{SECRET}@h/a/b", "names no database"),
    (f"postgresql://u:{SECRET}@/d", "has no host"),
    ("postgresql:///d", "has no host"),
    (f"mysql://u:{SECRET}@h:0/d", "has no host, or a port"),
    (f"mysql://u:{SECRET}@h:70000/d", "has no host, or a port"),
    (f"postgresql://u:{SECRET}@h/d#x", "names no database"),
    (f"postgresql://u:p@{SECRET}@h/d", "in a password write @ / ?"),
    (f"postgresql://u:{SECRET}/x@h/d", "in a password write @ / ?"),
    (f"postgresql://u:{SECRET}?x@h/d", "in a password write @ / ?"),
    (f"postgresql://h/d?password={SECRET}", "postgresql:// takes host, sslmode, sslrootcert, sslcert, sslkey"),
    (f"postgresql://u:{SECRET}@h/d?sslmode=on", "has a wrong option"),
    (f"postgresql://u:{SECRET}@h/d?prepare_threshold=never", "has a wrong option"),
    (f"postgresql://u:{SECRET}@h/d?keepalives=on", "has a wrong option"),
    (f"postgresql://u:{SECRET}@h/d?service=x", "has a wrong option"),
    (f"postgresql://u:{SECRET}@/d?host=/a,/b", "has a wrong option"),
    (f"postgresql://u:{SECRET}@/d?host=/a&host=/b", "has a wrong option"),
    (f"mysql://u:{SECRET}@h/d?sslmode=require", "mysql:// takes unix_socket, ssl_ca, ssl_cert, ssl_key"),
    (f"mariadb://u:{SECRET}@h/d?init_command={SECRET}", "mariadb:// takes unix_socket"),
    (f"postgresql://u:{SECRET}@h/d?sslrootcert=/none.pem", "its sslrootcert /none.pem cannot be used: No such file"),
    (f"mysql://u:{SECRET}@h/d?ssl_ca=/none.pem", "its ssl_ca /none.pem cannot be used: No such file"),
]  # fmt: skip


@each(
    ("url", "expected"),
    [
        ("postgres://u:p@h/d?sslmode=require", "postgresql://u:p@h/d?sslmode=require"),
        ("postgresql+psycopg://u:p@h/d", "postgresql://u:p@h/d"),
        ("postgresql+psycopg2://h/d", "postgresql://h/d"),
        ("mysql+pymysql://u:p@h/d?charset=utf8mb4", "mysql://u:p@h/d?charset=utf8mb4"),
        ("mariadb+mariadbconnector://u@h/d", "mariadb://u@h/d"),
        ("sqlite+pysqlite:////srv/queue.db", "sqlite:////srv/queue.db"),
    ],
)
def test_a_url_of_another_program_means_the_same_database(url, expected):
    assert expected == connection(url=url).url


@each(("url", "words"), BAD_URLS)
@each("key", ["url", "failed_url", "control_url"])
def test_a_bad_url_is_refused_in_a_line_without_its_password(key, url, words):
    message = refusal(**{key: url})

    assert message.startswith(f"--{key.replace('_', '-')}: ")
    assert words in message
    assert 1 == len(message.splitlines())
    assert SECRET not in message


@each("url", [url for url, _ in BAD_URLS if not url.startswith("oracle:")])
def test_masking_never_shows_a_password(url):
    assert SECRET not in masked(url)


@each(
    ("url", "expected"),
    [
        ("sqlite:////srv/queue.db", "sqlite:////srv/queue.db"),
        (f"sqlite:////srv/u:{SECRET}@h", "***"),
        ("postgresql://h:1/d", "postgresql://h:1/d"),
        (f"postgresql://me:{SECRET}@h:1/d", "postgresql://***@h:1/d"),
        (f"postgresql://:{SECRET}@/d?host=/run", "postgresql://***@/d?***"),
        (f"mysql://me:{SECRET}@[::1]:1/d?ssl_ca=/x", "mysql://***@[::1]:1/d?***"),
        ("mariadb://localhost/d", "mariadb://localhost/d"),
        (f"mysql://:{SECRET}", "***"),
        ("mysql://:12345/d", "***"),
    ],
)
def test_a_masked_url_still_says_where(url, expected):
    assert expected == masked(url)


@each(
    ("url", "expected"),
    [
        ("postgresql://u:p@h/d", True),
        ("mysql://u@h/d", False),
        ("sqlite:////srv/a:b@c.db", False),
        ("valkey+sentinel://h/m?sentinel_password=p", True),
        ("redis+sentinel://h/m?sentinel_user=u", False),
    ],
)
def test_a_path_holds_no_password(url, expected):
    assert expected == has_password(url)


@each("key", ["url", "failed_url", "control_url"])
def test_a_databases_password_that_every_user_can_read_is_refused(tmp_path, key):
    path = tmp_path / "pool.ini"
    path.write_text(f"[connection]\n{key} = mysql://u:{SECRET}@h/d\n")
    path.chmod(0o644)
    with pytest.raises(
        ConfigError, match=rf"pool.ini:2: \[connection\] {key}: holds a password that every user"
    ) as caught:
        load(path, {}, {})

    assert SECRET not in str(caught.value)


@each("key", ["url", "failed_url", "control_url"])
def test_no_repr_of_settings_shows_a_password(key):
    assert SECRET not in repr(connection(**{key: f"postgresql://u:{SECRET}@h/d"}))


# Where the queue is


@each("said", [{}, {"driver": "sql"}, {"driver": ""}, {"url": "sqlite:///queuepool.db"}])
def test_without_a_server_the_queue_is_a_file_of_ours_in_the_working_directory(tmp_path, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    found = connection(**said)

    assert (f"sqlite:///{tmp_path}/queuepool.db", True) == (found.url, found.embedded)


def test_what_a_file_says_of_paths_is_the_same_wherever_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/pool.ini").write_text("[pool]\nruntime_dir = run\n[connection]\nfailed_url = sqlite:///a b%.db\n")
    monkeypatch.chdir(tmp_path)
    found = load(Path("shop/pool.ini"), {}, {})
    [pool] = found.pools

    assert (f"sqlite:///{tmp_path}/shop/queuepool.db", True) == (pool.connection.url, pool.connection.embedded)
    assert str(tmp_path / "shop/a b%.db") == database_of(pool.connection.failed_url)
    assert tmp_path / "shop/run" == pool.runtime_dir.absolute()


def test_what_a_flag_or_a_variable_says_begins_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/pool.ini").write_text("[connection]\nurl = sqlite:////srv/other.db\n")
    monkeypatch.chdir(tmp_path)
    said = {"connection.url": "sqlite:///here.db"}
    found = load(Path("shop/pool.ini"), said, {"QUEUEPOOL_CONNECTION_FAILED_URL": "sqlite:///there.db"})

    assert str(tmp_path / "here.db") == database_of(found.connections["default"].url)
    assert str(tmp_path / "there.db") == database_of(found.connections["default"].failed_url)


@each("url", ["sqlite:///other.db", "sqlite:///a/queuepool.db", "postgresql://u@h/d", "redis://h"])
def test_what_is_elsewhere_is_not_ours_to_make(url):
    assert not connection(url=url).embedded


def test_the_driver_redis_alone_is_the_local_server():
    assert ("redis://127.0.0.1:6379/0", False) == (connection(driver="redis").url, connection(driver="redis").embedded)


def test_without_a_working_directory_there_is_no_file_of_ours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()

    assert "is a relative path, and there is no working directory" in refusal()


# What contradicts what


@each(
    ("said", "message"),
    [
        ({"driver": "redis", "url": "sqlite:///x"}, "driver: redis contradicts the url, which leads to sql"),
        ({"driver": "sql", "url": "unix:///x"}, "driver: sql contradicts the url, which leads to redis"),
        ({"prefix": "laravel_"}, "prefix: is for keys in Redis"),
        ({"prefix": "laravel_", "url": "mysql://u@h/d"}, "prefix: is for keys in Redis"),
        ({"failed": "sql", "driver": "redis"}, "failed: sql is not where the queue is: set failed_url"),
        ({"failed": "redis"}, "failed: redis is not where the queue is: set failed_url"),
        ({"failed": "redis", "failed_url": "mysql://h/d"}, "failed: redis contradicts failed_url"),
        ({"failed": "null", "failed_url": "mysql://h/d"}, "failed-url: contradicts failed = null"),
    ],
)
def test_what_contradicts_itself_is_refused(said, message):
    assert 1 == len(refusal(**said).splitlines())
    assert message in refusal(**said)


@each(
    "said",
    [
        {"driver": "redis", "url": "rediss://h"},
        {"driver": "sql", "url": "mysql://h/d"},
        {"driver": "redis", "failed": "sql", "failed_url": "mysql://h/d"},
        {"driver": "redis", "failed_url": "postgresql://h/d", "prefix": "laravel_"},
        {"failed": "redis", "failed_url": "redis://h", "prefix": "laravel_"},
        {"failed": "sql", "control_url": "redis://h/1", "prefix": "laravel_"},
        {"failed": "null"},
        {"failed": "", "failed_url": ""},
    ],
)
def test_what_goes_together_is_taken(said):
    assert connection(**said)


def test_a_contradiction_of_the_environment_with_a_file_names_what_said_it(tmp_path):
    path = tmp_path / "pool.ini"
    path.write_text("[pool]\n[connection]\ndriver = sql\nprefix = x_\n")
    with pytest.raises(ConfigError) as caught:
        load(path, {}, {"QUEUEPOOL_CONNECTION_URL": "mysql://h/d", "QUEUEPOOL_CONNECTION_DRIVER": "redis"})

    assert [
        "QUEUEPOOL_CONNECTION_DRIVER: redis contradicts the url, which leads to sql",
        f"{path}:4: [connection] prefix: is for keys in Redis: "
        "leave it out, a database's tables are named by jobs_table and so on",
    ] == str(caught.value).splitlines()


# What is installed


@pytest.fixture(scope="session")
def bare_install(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place that has what an installation without extras brings, and nothing else."""
    folder = tmp_path_factory.mktemp("packages")
    for name in (*BARE, *([OF_REDIS] if find_spec("async_timeout") else [])):
        for file in distribution(name).files or ():
            place = folder / file.parts[0]
            if ".." not in file.parts and not place.exists():
                place.symlink_to(Path(str(distribution(name).locate_file(file.parts[0]))))
    return folder


def bare(packages: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{packages}:{ROOT}"}
    command = [sys.executable, "-S", "-m", "queuepool", *words]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.by_turns("extra")
@pytest.mark.parametrize(
    ("url", "extra"),
    [
        (f"postgresql://u:{SECRET}@h/d", "sql-postgres"),
        (f"mysql://u:{SECRET}@h/d", "sql-mysql"),
        (f"mariadb://u:{SECRET}@h/d", "sql-mysql"),
    ],
)
@pytest.mark.parametrize("verb", ["start", "work", "size", "migrate", "check"])
@pytest.mark.by_turns("verb", "url")
def test_a_missing_driver_is_a_line_that_says_what_to_install(bare_install, tmp_path, verb, url, extra):
    done = bare(bare_install, tmp_path, verb, "--url", url)
    scheme = url.partition(":")[0]

    assert (78, f"connection default: url: {scheme}:// needs pip install 'queuepool-worker[{extra}]'\n") == (
        done.returncode,
        done.stderr,
    )


@pytest.mark.thorough("a test below sees that nothing of a database is imported for Redis")
def test_redis_needs_no_driver_of_a_database(bare_install, tmp_path, redis_url):
    done = bare(bare_install, tmp_path, "size", "--url", redis_url)

    assert (0, "") == (done.returncode, done.stderr)


A_JOB = "from queuepool import job\n\n@job\ndef a(): ...\n"


def test_a_bare_installation_works_with_its_own_default(bare_install, tmp_path):
    (tmp_path / "jobs.py").write_text(A_JOB)
    for words in (("push", "jobs.a"), ("size",), ("work", "--stop-when-empty", "--modules", "jobs")):
        done = bare(bare_install, tmp_path, *words)

        assert 0 == done.returncode, done.stderr


def test_nothing_asks_the_index_for_a_package_of_our_import_name():
    places = [*ROOT.glob("scripts/*"), ROOT / "setup.cfg", *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]

    assert [] == [line for path in places if path.is_file() for line in found_in(path)]


def found_in(path: Path) -> list[str]:
    """Where it would be installed by the name that is somebody else's on the index."""
    return re.findall(r"(?m)^ *queuepool *(?:\[|[<>=~]=).*|pip install.* '?queuepool['\[ ].*", path.read_text())


def test_who_asks_no_store_needs_no_driver(bare_install, tmp_path):
    assert 3 == bare(bare_install, tmp_path, "status", "--runtime-dir", str(tmp_path)).returncode


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        pytest.param("size", 0, marks=pytest.mark.thorough("work imports more")),
        pytest.param("check", 0, marks=pytest.mark.thorough("work imports more")),
        ("work", 0),
    ],
)
def test_for_redis_nothing_of_a_database_is_imported(redis_url, tmp_path, verb, code):
    (tmp_path / "jobs.py").write_text(A_JOB)
    flags = ["--stop-when-empty", "--modules", "jobs"] if verb == "work" else []
    command = [sys.executable, "-X", "importtime", "-m", "queuepool", verb, "--url", redis_url, *flags]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}

    assert code == done.returncode
    assert "redis" in imported
    assert set() == {"sqlalchemy", "sqlite3", "psycopg", "pymysql"} & imported
