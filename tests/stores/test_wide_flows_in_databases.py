"""Flows in databases in which very many members follow one: no statement names more than a database takes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event

from tests.support.drivers import connection_of, opened
from tests.support.graphs import Drawn, as_done
from tests.support.store_contract import OURS


def test_the_end_of_a_member_names_few_rows_in_a_statement_however_many_follow(request):
    named = list[int]()

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool) -> None:
        named.extend(map(len, parameters) if executemany else [len(parameters)])

    with opened(connection_of("sqlite", request)) as stores:
        drawn = Drawn({"root": (), **{f"after{number}": ("root",) for number in range(1100)}})
        stores.flows.write(drawn.flow, drawn.members)
        done = [as_done(lease) for lease in stores.queue.reserve(["default"], OURS, 1).leases]
        event.listen(stores.client.engine, "before_cursor_execute", note)
        stores.queue.reserve(["default"], OURS, 1, done)

        assert 1100 == stores.flows.find(drawn.id).counts.running
        assert max(named) < 600
