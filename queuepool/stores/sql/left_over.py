"""What is left over of the end of a member that very many follow: one transaction tells some of them.

It is in rows of ``queuepool_joins`` whose stripe is below 0: that says how the member has ended, and ``open`` how many
of its followers, in the order of their keys, were told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.parts import parts_of

#: most edges that one transaction follows, and most rows of what is left over that it takes
MOST_EDGES = 1000
#: seconds until a steward goes on with what was left over
SOON = 2.0
#: what a stripe below 0 says
_WAYS: list[tuple[str, bool]] = [(letter, is_spent) for letter in "dfck" for is_spent in (False, True)]


class Over(NamedTuple):
    """A member that has ended: how, and whether its edges of the rules f and a were counted before."""

    number: str
    letter: str
    is_spent: bool
    #: how many of its followers were told
    told: int = 0
    #: whether it was resumed since: those that follow it by the rule s wait again
    is_back: bool = False


class LeftOver:
    """The rows of one database; each verb is in its caller's transaction, which has locked the rows of the members."""

    def __init__(self, client: SqlClient) -> None:
        self._joins = client.tables.queuepool_joins
        self._members = client.tables.queuepool_members

    def put(self, connection: Connection, flow_id: str, over: Sequence[Over]) -> None:
        """Leave these over. One that was left over in the same way before has failed again, and counts nothing more."""
        self._delete(connection, flow_id, over)
        common = {"flow": flow_id, "bad": 0}
        rows = [{**common, "n": one.number, "stripe": _stripe_of(one), "open": one.told} for one in over]
        connection.execute(insert(self._joins), rows)

    def take(self, connection: Connection, flow_id: str) -> list[Over]:
        """Some of it, that is no longer left over; no other takes anything of the flow until the transaction ends."""
        row = self._joins.c
        found = select(row.n, row.stripe, row.open).where(self._is_of(flow_id)).order_by(row.n, row.stripe)
        rows = connection.execute(found.limit(MOST_EDGES).with_for_update()).all()
        over = [Over(number, *_way_of(stripe), told) for number, stripe, told in rows]
        self._delete(connection, flow_id, over)
        letters = self._letters(connection, flow_id, sorted({one.number for one in over}))
        return [one._replace(is_back=letters[one.number] != one.letter) for one in over]

    def _delete(self, connection: Connection, flow_id: str, over: Sequence[Over]) -> None:
        row = self._joins.c
        for stripe in {_stripe_of(one) for one in over}:
            these = row.flow == flow_id, row.stripe == stripe
            for part in parts_of([one.number for one in over if _stripe_of(one) == stripe]):
                connection.execute(delete(self._joins).where(*these, row.n.in_(part)))

    def _letters(self, connection: Connection, flow_id: str, numbers: Sequence[str]) -> dict[str, str]:
        """What these members are, and stay until the transaction ends."""
        member, found = self._members.c, dict[str, str]()
        for part in parts_of(numbers):
            these = select(member.n, member.state).where(member.flow == flow_id, member.n.in_(part))
            rows = connection.execute(these.order_by(member.n).with_for_update())
            found |= {row.n: row.state for row in rows}
        return found

    def has_any(self, connection: Connection, flow_id: str) -> bool:
        """Whether anything of the flow is left over."""
        return connection.execute(select(self._joins.c.n).where(self._is_of(flow_id)).limit(1)).first() is not None

    def drop(self, connection: Connection, flow_id: str) -> None:
        """Of a flow that is given up."""
        connection.execute(delete(self._joins).where(self._is_of(flow_id)))

    def _is_of(self, flow_id: str) -> ColumnElement[bool]:
        return (self._joins.c.flow == flow_id) & (self._joins.c.stripe < 0)


def _way_of(stripe: int) -> tuple[str, bool]:
    return _WAYS[-1 - stripe]


def _stripe_of(one: Over) -> int:
    return -1 - _WAYS.index((one.letter, one.is_spent))
