"""Check the hosts of PostgreSQL's URL: which is the primary, who follows it, and what a failover would lose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

from sqlalchemy import Connection

from queuepool.config.urls import nodes_of, of_each_node
from queuepool.errors import StoreError
from queuepool.stores.finding import Grade
from queuepool.stores.sql.client import SqlClient

#: seconds for a host, which may be the one that is lost
_PATIENCE = 2.0
_WRITABLE = "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'"
#: the last number is 0 as well where the user may not see who is what
_FOLLOWERS = (
    "SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'), count(*),"
    " count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), count(sync_state) FROM pg_stat_replication"
)
_LOSES = "a failover loses what was acknowledged in its last moments"
#: settings of ``synchronous_commit`` with which a commit waits for no standby
_WAITS_FOR_NONE = ("off", "local")


def inspect_hosts(url: str) -> Iterator[tuple[Grade, str]]:
    """The findings about a URL with several hosts; about any other none."""
    nodes = [f"{host}:{port}" for host, port in nodes_of(url)]
    if len(nodes) < 2:
        return
    primaries = []
    for where, one in zip(nodes, of_each_node(url), strict=True):
        with closing(SqlClient(_to_any(one), shared=True, timeout=_PATIENCE)) as client:
            try:
                if client.ask(_is_writable):
                    primaries.append(where)
                    yield Grade.OK, f"host {where} is the primary"
                    yield from client.ask(_followed)
                else:
                    yield Grade.OK, f"host {where} is a standby"
            except StoreError as error:
                yield Grade.WARN, f"host {where} does not answer, so that no failover could lead there: {error}"
    if len(primaries) > 1:
        yield Grade.FAIL, f"{' and '.join(primaries)} both take writes: end the one that was the primary before"


def _to_any(url: str) -> str:
    """The URL of one host, whatever it is."""
    return re.sub("target_session_attrs=[^&]*&?", "", url)


def _is_writable(connection: Connection) -> bool:
    return bool(connection.exec_driver_sql(_WRITABLE).scalar_one())


def _followed(connection: Connection) -> list[tuple[Grade, str]]:
    names, commits, count, synchronous, seen = connection.exec_driver_sql(_FOLLOWERS).one()
    waits = names and commits not in _WAITS_FOR_NONE
    if waits and not synchronous and seen == count:
        words = f"of {count} standbys that follow, none is among synchronous_standby_names ({names})"
        return [(Grade.FAIL, f"{words}: each commit waits for one, so that nothing is pushed or run")]
    if not count:
        return [(Grade.WARN, "no standby follows the primary: a failover would lose jobs")]
    following = f"standbys that follow: {count}"
    if not names:
        words = f"none of them synchronous: {_LOSES}, unless you set synchronous_standby_names"
        return [(Grade.WARN, f"{following}, {words}")]
    if not waits:
        return [(Grade.WARN, f"{following}, but synchronous_commit is {commits}: {_LOSES}")]
    return [(Grade.OK, f"{following}, synchronous_standby_names {names}")]
