"""PostgreSQL and MariaDB: how each is set up, run, addressed and emptied."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import pytest

USER = "queuepool"
#: Debian keeps PostgreSQL's versions side by side; the newest comes first
_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
_PLACES = [*map(str, _POSTGRES), os.environ.get("PATH", os.defpath), "/usr/sbin"]


class Brand(Protocol):
    """A kind of server, with all its files in ``folder``.

    A commit outlives a killed server in any case; if ``durable``, the servers' default, also a failing machine.
    """

    folder: str
    durable: bool
    #: what SQLAlchemy appends to the scheme
    driver: str
    #: how it connects without TLS, for which PyMySQL would read the machine's certificates each time
    plain: ClassVar[dict[str, bool]]
    #: the database that exists from the start
    first: str
    #: requests a clean stop that waits for no client
    ends_by: signal.Signals
    #: what it receives when its starter dies, whether it is ready or not
    orphaned_by: signal.Signals
    #: what the pid file contains, besides the pid, once connections are accepted
    ready: list[str]

    @property
    def socket(self) -> str:
        """What a PHP peer gives as ``host`` (PostgreSQL) or ``unix_socket`` (MariaDB)."""

    @property
    def pid_file(self) -> str: ...
    def set_up(self) -> list[str]: ...
    def command(self) -> list[str]: ...
    def url(self, database: str) -> str: ...
    def empty(self, database: str) -> list[str]: ...

    def without_rows(self, database: str) -> list[str]:
        """As ``empty``, but it leaves the tables, whose numbers begin at 1 again."""

    def shape(self, database: str) -> str:
        """Asks for one text that tells what tables there are, and of what kind."""


@dataclass(frozen=True)
class Postgres:
    folder: str
    durable: bool = False
    driver = "psycopg"
    plain: ClassVar[dict[str, bool]] = {}
    first = "postgres"
    ends_by = orphaned_by = signal.SIGINT
    ready = ["ready"]

    @property
    def socket(self) -> str:
        return self.folder

    @property
    def pid_file(self) -> str:
        return f"{self.folder}/data/postmaster.pid"

    def set_up(self) -> list[str]:
        access = [f"--username={USER}", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
        return [find("initdb"), "--pgdata", f"{self.folder}/data", "--no-sync", *access]

    def command(self) -> list[str]:
        place = ["--listen_addresses=", f"--unix_socket_directories={self.folder}", "--port=5432"]
        fsync = "on" if self.durable else "off"
        # Its default for deadlocks, one second, is as long as a store's timeout in the tests.
        small = ["--shared_buffers=16MB", "--deadlock_timeout=50ms"]
        return [find("postgres"), "-D", f"{self.folder}/data", *place, *small, f"--fsync={fsync}"]

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={self.socket}"

    def empty(self, database: str) -> list[str]:
        """Ten times as fast as creating a new database of hundreds of files."""
        own = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)'"
        drop = "EXECUTE format('DROP SCHEMA %I CASCADE', own)"
        drop_schemas = f"DO $$ DECLARE own name; BEGIN FOR own IN {own} LOOP {drop}; END LOOP; END $$"
        return [self._end_others(), drop_schemas, "CREATE SCHEMA public"]

    def without_rows(self, database: str) -> list[str]:
        """A third of what it takes to truncate them all."""
        ours = "FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind"
        is_filled = "EXECUTE format('SELECT EXISTS (SELECT FROM %s)', one) INTO filled"
        clear = f"{is_filled}; IF filled THEN EXECUTE format('TRUNCATE %s', one); END IF"
        each = f"FOR one IN SELECT oid::regclass {ours} = 'r' LOOP {clear}; END LOOP"
        numbers = f"SELECT setval(oid::regclass, 1, false) {ours} = 'S'"
        return [self._end_others(), f"DO $$ DECLARE one regclass; filled bool; BEGIN {each}; END $$", numbers]

    def shape(self, database: str) -> str:
        columns = "concat_ws(' ', relnamespace::regnamespace, relname, attname, format_type(atttypid, atttypmod))"
        found = f"SELECT {columns} AS one FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
        own = "relnamespace::regnamespace::text !~ '^(pg_|information_schema$)'"
        return f"SELECT string_agg(one, ',' ORDER BY one) FROM ({found} WHERE {own}) AS columns"

    def _end_others(self) -> str:
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        return f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"


@dataclass(frozen=True)
class MariaDB:
    folder: str
    durable: bool = False
    driver = "pymysql"
    plain: ClassVar[dict[str, bool]] = {"ssl_disabled": True}
    first = USER
    ends_by = signal.SIGTERM
    # Before it accepts connections, SIGTERM stops its start for ever instead of ending it.
    orphaned_by = signal.SIGKILL
    ready = []

    @property
    def socket(self) -> str:
        return f"{self.folder}/maria.sock"

    @property
    def pid_file(self) -> str:
        return f"{self.folder}/pid"

    def set_up(self) -> list[str]:
        account = f"{USER}@localhost"
        first = [
            "FLUSH PRIVILEGES",
            f"CREATE USER {account}",
            f"GRANT ALL ON *.* TO {account} WITH GRANT OPTION",
            f"CREATE DATABASE {USER}",
        ]
        file = Path(self.folder, "first.sql")
        file.write_text("".join(f"{line};\n" for line in first))
        file.chmod(0o644)
        return [find("mariadb-install-db"), *self._options(), "--skip-test-db", f"--extra-file={file}"]

    def command(self) -> list[str]:
        place = [f"--socket={self.socket}", f"--pid-file={self.pid_file}", "--skip-networking"]
        flush = [] if self.durable else ["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync"]
        return [find("mariadbd"), *self._options(), *place, *flush]

    def url(self, database: str) -> str:
        return f"mariadb://{USER}@localhost/{database}?unix_socket={self.socket}"

    def empty(self, database: str) -> list[str]:
        return [self._end_others(database), f"DROP DATABASE {database}", f"CREATE DATABASE {database}"]

    def without_rows(self, database: str) -> list[str]:
        tables = f"SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '{database}'"
        clear = "EXECUTE IMMEDIATE CONCAT('DELETE FROM ', one.name)"
        numbers = f"{tables} AND auto_increment > 1"
        restart = "EXECUTE IMMEDIATE CONCAT('ALTER TABLE ', one.name, ' AUTO_INCREMENT = 1')"
        each = f"FOR one IN ({tables}) DO {clear}; END FOR; FOR one IN ({numbers}) DO {restart}; END FOR"
        return [self._end_others(database), f"BEGIN NOT ATOMIC {each}; END"]

    def shape(self, database: str) -> str:
        columns = "CONCAT_WS(' ', table_name, column_name, column_type, character_set_name, is_nullable)"
        own = f"FROM information_schema.columns WHERE table_schema = '{database}'"
        return f"SELECT GROUP_CONCAT({columns} ORDER BY table_name, ordinal_position) {own}"

    def _end_others(self, database: str) -> str:
        others = f"SELECT id FROM information_schema.processlist WHERE db = '{database}' AND id <> CONNECTION_ID()"
        has_gone = "DECLARE CONTINUE HANDLER FOR 1094 BEGIN END"
        return f"BEGIN NOT ATOMIC {has_gone}; FOR other IN ({others}) DO KILL other.id; END FOR; END"

    def _options(self) -> list[str]:
        place = [f"--datadir={self.folder}/data", f"--tmpdir={self.folder}"]
        texts = ["--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_ci"]
        return ["--no-defaults", *place, *texts, "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"]


def find(program: str) -> str:
    """The program's path. Without it, skips the test, or fails it if CI is set."""
    found = shutil.which(program, path=os.pathsep.join(_PLACES))
    if found is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)(f"needs {program}")
    return found
