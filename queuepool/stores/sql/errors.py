"""Translates a database's errors into ours. These contain URLs only without login, and so no password."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy import exc

from queuepool.config.urls import database_of, masked, scheme_of
from queuepool.errors import LoginRefused, StoreDenied, StoreDown, StoreError, StoreFull, StoreUnfit, TableMissing
from queuepool.stores import certificates
from queuepool.stores.sql.sqlite import file_remedy

#: SQLSTATEs, MySQL's numbers and SQLite's names of temporary errors
_PASSING = re.compile(
    r"08...|53...|57...|55P03|25006|28...|3D000|"  # PostgreSQL: connection, resources, shutdown, lock, standby, login
    r"1021|1040|1044|1045|1049|1053|1114|1129|1158|1159|1160|1161|1203|1205|1226|1290|1317|1836|1927|1969|2\d\d\d|3024|"
    r"SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|NOMEM|PROTOCOL|SCHEMA|INTERRUPT).*"
)
#: no room: PostgreSQL's disk, MySQL's disk and tables, SQLite's disk
_FULL = re.compile(r"53100|1021|1114|SQLITE_FULL")
#: errors that need a change in the database
_DENIED = re.compile(r"42501|42P01|42703|1142|1143|1146|1054|1227|SQLITE_(READONLY|PERM|AUTH).*")
#: the whole transaction was rolled back and may be retried at once: it conflicted with others, or they took an id that
#: it had found free. (In SQLite no other process can write between a select and an insert.)
_TAKEN_BACK = re.compile(r"40001|40P01|1213|1020|23505|1062|25P03")
#: the session has ended too: its client was stopped in mid-transaction for longer than PostgreSQL waits
_SESSION_ENDED = "25P03"
_NO_COLUMN = re.compile(r"no such column|has no column named")  # SQLite has no code for it
#: raised by a driver itself, without a code from the server
_UNANSWERED = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)
#: PostgreSQL's standby, MySQL's server with --read-only, its engine with --innodb-read-only
_READ_ONLY = re.compile("25006|1290|1836")
_NO_TRANSACTIONS = "the pooler has pool_mode statement, which allows no transactions: set transaction or session"
#: errors of prepared statements where a pooler lends sessions without showing it
_MIXED_UP = re.compile(r"26000|42P05")
_MIXED = "a pooler mixes up prepared statements of several clients: add ?prepare_threshold=none to the url"
_LOGIN = re.compile(r"28...|1044|1045")
_NO_TABLE = re.compile(
    r"no such table: (?:\w+\.)?(\w+)|relation \"(?:\w+\.)?(\w+)\" does not exist|Table '(?:[^'.]+\.)?(\w+)' doesn't"
)
#: for the table that we only read
_NO_BATCHES = "set batches_url to the database that has Laravel's batches"


@dataclass(frozen=True, slots=True)
class Database:
    """Facts about a database for the texts of errors. ``migrate`` is the command that creates its tables.

    ``batches`` is the name of its table of batches. ``by_others``: a file that lacks a table is another program's, as
    ours have all of them.
    """

    url: str
    migrate: str = "queuepool migrate"
    batches: str = ""
    by_others: bool = False

    def lacks(self, table: str) -> str:
        """The message that it lacks this table, and what to do."""
        where = f"the file {database_of(self.url)}" if scheme_of(self.url) == "sqlite" else masked(self.url)
        remedy = _NO_BATCHES if table == self.batches else f"run `{self.migrate}`"
        return f"{where}{', which another program created,' if self.by_others else ''} has no table {table}: {remedy}"


def is_taken_back(error: exc.SQLAlchemyError) -> bool:
    """Whether the transaction was rolled back by the server: a deadlock, an id that is taken, a client that paused."""
    return bool(_TAKEN_BACK.fullmatch(_code(error)))


def has_ended_session(error: exc.SQLAlchemyError) -> bool:
    """Whether the server has ended the session together with its transaction."""
    return _code(error) == _SESSION_ENDED


def is_read_only(error: exc.SQLAlchemyError) -> bool:
    """Whether the server takes no writes, so that its other sessions are of no use either."""
    return bool(_READ_ONLY.fullmatch(_code(error)))


def translated(error: exc.SQLAlchemyError, database: Database) -> StoreError:
    """Our error: ``StoreDown`` if it is worth a retry, ``StoreDenied`` if the database must first be changed."""
    code, text = _code(error), _text(error)
    if remedy := file_remedy(code):
        text = f"{database_of(database.url)}: {text}: {remedy}"
    if name := _missing_table(error, text):
        return TableMissing(database.lacks(name))
    if "statement pooling mode" in text:
        return StoreUnfit(_NO_TRANSACTIONS)
    if _MIXED_UP.fullmatch(code):
        return StoreUnfit(_MIXED)
    if _LOGIN.fullmatch(code):
        return LoginRefused(f"the database rejected the user, password or database name: {text}")
    if _READ_ONLY.fullmatch(code):
        return StoreDown(f"the database is read-only, like a standby: {text}")
    if _DENIED.fullmatch(code) or _NO_COLUMN.search(text):
        return StoreDenied(text)
    if _FULL.fullmatch(code):
        return StoreFull(text)
    if _is_passing(error, code):
        return StoreDown(text)
    return StoreError(text)


def _missing_table(error: exc.SQLAlchemyError, text: str) -> str:
    if isinstance(error, exc.NoSuchTableError):
        return str(error).rpartition(".")[2].strip('`"')
    found = _NO_TABLE.search(text)
    return next(filter(None, found.groups())) if found else ""


def _is_passing(error: exc.SQLAlchemyError, code: str) -> bool:
    if _PASSING.fullmatch(code) or _TAKEN_BACK.fullmatch(code):
        return True
    # Without a code, the server has not answered.
    return isinstance(error, _UNANSWERED) and not code


def _code(error: exc.SQLAlchemyError) -> str:
    origin = getattr(error, "orig", None)
    number = origin.args[0] if origin is not None and origin.args else None
    if isinstance(number, int):
        # MySQL's numbers are more specific than its SQLSTATEs. The driver's 0 means that the connection was closed.
        return str(number or 2013)
    return str(getattr(origin, "sqlstate", None) or getattr(origin, "sqlite_errorname", None) or "")


def _text(error: exc.SQLAlchemyError) -> str:
    origin = getattr(error, "orig", None) or error
    text = str(origin.args[-1] if origin.args else origin)
    return certificates.explained(" ".join(text.split("\n")[0].split()) or type(origin).__name__)
