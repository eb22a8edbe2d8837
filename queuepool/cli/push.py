"""Push one job by hand, checked before it is stored: a typo should not fail hours later."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import closing, redirect_stdout
from difflib import get_close_matches
from keyword import iskeyword
from typing import Any

import click

from queuepool.cli import output
from queuepool.cli.options import CONNECTION, TEXT, Where, located, option, parsed
from queuepool.cli.queues import one_queue
from queuepool.config import values
from queuepool.errors import BadArguments, BadPayload, BootFailure, UnknownJob
from queuepool.jobs.arguments import reader_of
from queuepool.jobs.client import Queue
from queuepool.jobs.door import terms_of
from queuepool.jobs.job_options import Options
from queuepool.jobs.registry import REGISTRY, Handler, bound
from queuepool.payload.command import Commands
from queuepool.payload.envelope import MAX_BYTES, Envelope, decode, encode
from queuepool.payload.strict_json import read_object
from queuepool.worker.boot import import_application


@click.command()
@located(*CONNECTION, "pool.modules")
@click.argument("name", type=TEXT)
@option("--data", metavar="JSON", help="Arguments: an object by name, a list by position; - reads standard input")
@option(
    "--queue", metavar="QUEUE", type=parsed(one_queue), help="Push to this queue  [default: the job's own, or default]"
)
@option(
    "--delay", metavar="SECONDS", type=parsed(values.seconds), default=0.0, help="Time until it is ready  [default: 0]"
)
@option(
    "--track",
    metavar="SECONDS",
    type=parsed(values.seconds),
    default=None,
    help="How long to keep its state after its end",
)
@click.option("--force", is_flag=True, help="Push it even if no module registers it")
def push(
    where: Where, name: str, data: str | None, queue: str | None, delay: float, track: float | None, force: bool
) -> None:
    """Push the job NAME and print its id"""
    value = None if data is None else _json(_stdin() if data == "-" else os.fsencode(data))
    handler, unchecked = (None, "") if force else _handler(where, name)
    options = handler.options if handler else Options()
    _judge(name, value, handler)
    target = queue or options.queue or "default"
    with closing(Queue(where.connection_of(target))) as connection:
        kept = options.track if track is None else track
        terms = terms_of(name, target, delay, kept, options, options.encrypted)
        output.say(connection.pusher.push([(name, value)], terms)[0])
    for note in filter(None, (unchecked, where.note_on(target))):
        output.complain(note)


def _judge(name: str, value: object, handler: Handler | None) -> None:
    """Read it as a worker will: what is refused now never reaches the quarantine or the failed store."""
    try:
        payload = decode(encode(name, value, Envelope(0))[1])
        if handler:
            bound(handler, Commands().data_of(payload), reader_of(name, handler.target))
    except (BadPayload, BadArguments) as error:
        raise click.UsageError(str(error)) from error


def _stdin() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.BadParameter("standard input is a terminal: pipe the JSON in", param_hint="--data")
    return sys.stdin.buffer.read(MAX_BYTES + 1)


def _json(raw: bytes) -> Any:
    """One JSON value, checked as strictly as a worker checks the whole payload."""
    if len(raw) > MAX_BYTES:
        raise click.BadParameter(f"is larger than {MAX_BYTES} bytes", param_hint="--data")
    try:
        fields = read_object(b'{"data":%b}' % raw)
    except BadPayload as error:
        reason = getattr(error.__cause__, "msg", error.reason)
        raise click.BadParameter(f"is not JSON ({reason})", param_hint="--data") from error
    if set(fields) != {"data"}:
        raise click.BadParameter("is not one JSON value", param_hint="--data")
    return fields["data"]


def _handler(where: Where, name: str) -> tuple[Handler | None, str]:
    """The job's handler, if known, and a note on why it is not checked.

    ``Class@method`` and ``App\\Class`` may be for Laravel's workers.
    """
    modules = list(dict.fromkeys(module for pool in where.pools() for module in pool.modules))
    if modules:
        _import(modules)
    elif why := _looked_for(name):
        note = f"note: {name} is not checked: no modules are named (--modules), and {why}"
        return None, "" if _may_be_php(name) else note
    try:
        return REGISTRY.find(name), ""
    except UnknownJob as error:
        if _may_be_php(name):
            return None, ""
        if error.lacks:
            raise click.UsageError(str(error)) from error
        close = get_close_matches(name, REGISTRY.names(), 1)
        hint = f"did you mean {close[0]!r}?" if close else "--force pushes it for other workers"
        raise click.UsageError(f"{error}; {hint}") from error


def _import(modules: Sequence[str]) -> None:
    with redirect_stdout(sys.stderr):  # what they print is not the id
        import_application(modules)


def _looked_for(name: str) -> str:
    """Import the module that the job's name begins with; returns why no job was found there, else an empty text."""
    parts = name.split(".")[:-1]
    if not parts or not all(part.isidentifier() and not iskeyword(part) for part in parts):
        return "its name contains none"
    try:
        _import([".".join(parts)])
    except BootFailure as failure:
        return str(failure)
    return "" if REGISTRY.names() or REGISTRY.without_handle else f"{'.'.join(parts)} registers no job"


def _may_be_php(name: str) -> bool:
    return "@" in name or "\\" in name
