"""What a command has changed becomes a line of the journal in its store, with who has done it."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from queuepool.board.about import operator
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.options import Where
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError

if TYPE_CHECKING:
    from queuepool.stores.factory import Stores

#: seconds that a verb for local pools, which needs no store, waits for a silent one
_PATIENCE = 2.0


def note(stores: Stores, verb: str, subject: str, count: int | None = None) -> None:
    """Add a line that the verb was done to ``subject``, to ``count`` jobs or other things.

    Call it once for all that one command has done, when it is done. If no line can be added, a note explains why: what
    was done stays done.
    """
    from queuepool.operating.carrying_out import journaled  # imported here: local pools need no store

    if why := journaled(stores, operator(), verb, subject, count):
        _complain(why)


class ActedOn(NamedTuple):
    """A local pool that a command acts on; made before that, since its directory may be gone afterwards."""

    name: str
    #: whether its store is that of this command's configuration, which alone has a journal for it
    is_of_our_store: bool

    @classmethod
    def of(cls, runtime: RuntimeDir) -> ActedOn:
        about = runtime.about()
        return cls(runtime.name, about is None or about.identity == runtime.store)


def note_local(where: Where, verb: str, pools: Iterable[ActedOn]) -> None:
    """Add a line for each of these pools of this host, even while its store is away."""
    connections = {pool.name: pool.connection for pool in where.pools()}
    host = socket.gethostname()
    for pool in pools:
        if not pool.is_of_our_store:
            _complain(f"pool {pool.name} has another store than this configuration")
        elif connection := connections.get(pool.name):
            _note_at(connection, verb, f"pool {pool.name} on {host}")


def _note_at(connection: ConnectionSettings, verb: str, subject: str) -> None:
    from queuepool.stores.factory import Stores  # imported here: most of the time of these verbs

    try:
        with closing(Stores(connection, reply_timeout=_PATIENCE)) as stores:
            note(stores, verb, subject)
    except ConfigError as error:  # a driver is missing here, which the verb itself does without
        _complain(str(error))


def _complain(why: str) -> None:
    output.complain(f"note: the journal has no line of this: {why}")
