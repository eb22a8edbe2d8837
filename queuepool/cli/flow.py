"""Flows: listed, shown as graphs, cancelled, and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import click

from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.group import Verbs
from queuepool.cli.options import CONNECTION, JSON, TEXT, Where, located, option, parsed
from queuepool.cli.reading import Reading
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.operating.flows import flow_facts, lines_of, listed, put_back
from queuepool.operating.scopes import scope_of
from queuepool.stores.flows import STATES, FlowFilter, FlowRecord
from queuepool.unix.exit_codes import FAILED, OK

_ID = click.argument("flow_id", metavar="ID", type=TEXT)


@click.group(cls=Verbs)
def flow() -> None:
    """List flows, show one as a graph, cancel it, or resume it after a failure"""


@flow.command("list")
@located(*CONNECTION)
@option("--count", metavar="COUNT", type=parsed(values.count), default=100, help="How many  [default: 100]")
@option("--state", metavar="STATE", type=click.Choice(STATES), help="Only those in this state")
@option("--name", metavar="NAME", type=TEXT, default="", help="Only those of this name; it may end in *")
@JSON
def list_them(where: Where, count: int, state: str | None, name: str, as_json: bool) -> int:
    """List flows, the latest first: how many of their jobs are done, and how they have ended"""
    reading, wanted = Reading(where.connections()), FlowFilter(state or "", name)

    def rows(connection: ConnectionSettings) -> Iterator[dict[str, Any]]:
        with closing(Queue(connection, by_hand=True)) as queue:
            for row in listed(queue.stores, wanted, count)[0]:
                yield reading.place(connection) | row

    output.listing(reading.each(rows), as_json, spare=("created", "ended", "connection"))
    return reading.code


@flow.command()
@located(*CONNECTION)
@_ID
@JSON
def show(where: Where, flow_id: str, as_json: bool) -> int:
    """Show one flow: its progress, and each of its jobs with those that follow it

    Shows at most 200 jobs; --json shows all.
    """

    def look(queue: Queue, record: FlowRecord) -> int:
        facts = flow_facts(queue.stores, record)
        if as_json:
            output.document(output.versioned(facts))
            return OK
        for key in ("id", "name", "state", "progress", "created", "ended"):
            if facts[key]:
                output.say(f"{key}: {facts[key]}")
        for line in lines_of(facts):
            output.say(line)
        return OK

    return _on_one(where, flow_id, look)


@flow.command()
@located(*CONNECTION)
@_ID
def cancel(where: Where, flow_id: str) -> int:
    """Start no more of a flow: its jobs in queues are left out, those that run go on to their ends"""

    def stop(queue: Queue, record: FlowRecord) -> int:
        if not queue.stores.flows.cancel(flow_id):
            output.complain(f"flow {flow_id} is over: {record.state}")
            return FAILED
        note(queue.stores, "flow cancel", f"flow {flow_id} on connection {queue.settings.name}")
        output.say(f"flow {flow_id}: cancelled")
        return OK

    return _on_one(where, flow_id, stop)


@flow.command()
@located(*CONNECTION)
@_ID
def retry(where: Where, flow_id: str) -> int:
    """Put the failed jobs of a flow back on their queues: it goes on from there, and nothing runs twice"""

    def resume(queue: Queue, record: FlowRecord) -> int:
        with scope_of(where, queue.settings) as scope:
            done = put_back(scope, flow_id)
        if done:
            note(queue.stores, "flow retry", f"flow {flow_id} on connection {queue.settings.name}", done)
            output.say(f"flow {flow_id}: {output.counted(done, 'job')} put back")
            return OK
        output.complain(f"flow {flow_id}: none of its failed jobs could be put back; it is {record.state}")
        return FAILED

    return _on_one(where, flow_id, resume)


def _on_one(where: Where, flow_id: str, act: Callable[[Queue, FlowRecord], int]) -> int:
    """Do it where the flow is; returns the exit code."""
    reading = Reading(where.connections())

    def codes(connection: ConnectionSettings) -> Iterator[int]:
        with closing(Queue(connection, by_hand=True)) as queue:
            if record := queue.stores.flows.find(flow_id):
                yield act(queue, record)

    code = next(reading.each(codes), None)
    if code is None:
        output.complain(f"there is no flow {flow_id}: it never existed, or it is not kept any more")
        return FAILED
    return code
