"""Watch the local pools on a terminal, or print one frame."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from queuepool.board import runtime_dir
from queuepool.cli import output
from queuepool.cli.local import code_for, runtime_of
from queuepool.cli.options import PLACE, Where, located
from queuepool.config import application
from queuepool.top.frame import report
from queuepool.top.layout import Display
from queuepool.top.loop import Top, Watched, found_in
from queuepool.top.reading import PoolReader, PoolReading
from queuepool.top.screen import can_draw, drawing
from queuepool.unix import exit_codes

#: seconds between the two looks behind one frame: rates need two
_APART = 1.0
#: columns of a frame for a pipe
_COLUMNS = 160


@click.command()
@located(*PLACE)
@click.option(
    "--all", "everywhere", is_flag=True, help="Watch all pools in the runtime directory, not only the configuration's"
)
@click.option(
    "--once",
    is_flag=True,
    help="Print one frame as plain text, for a ticket; the default where the terminal cannot be drawn on",
)
def top(where: Where, everywhere: bool, once: bool) -> int:
    """Watch the local pools: workers, queues, jobs, rates

    It reads what the pools themselves write down, twice a second, so it works while the store is away, and costs the
    pools nothing. The key ? shows all keys. With --once it exits as status does: with 0 if all pools run, 3 if one
    does not, 4 if one runs no jobs.
    """
    find = functools.partial(_found if everywhere else _configured, where)
    pools = find()
    if not pools:
        output.complain(f"no pool runs in {', '.join(map(str, _folders(where)))}")
        return exit_codes.NOT_RUNNING
    if once or not can_draw():
        return _print_once(pools)
    drawing(lambda screen: Top(screen, find).run())
    return exit_codes.OK


def _folders(where: Where) -> list[Path]:
    return list(dict.fromkeys(pool.runtime_dir or runtime_dir.base() for pool in where.load().pools))


def _found(where: Where) -> list[Watched]:
    return [pool for folder in _folders(where) for pool in found_in(folder)]


def _configured(where: Where) -> list[Watched]:
    flags = [f"--config={where.path}"] if where.path else []
    flags += [f"--{key.partition('.')[2].replace('_', '-')}={value}" for key, value in where.overrides.items()]
    program, is_named = application.source().command, bool(where.pool_name or where.load().name)
    return [
        Watched(runtime_of(where, pool), program, [*flags, *([f"--pool={pool.name}"] if is_named else [])], os.environ)
        for pool in where.pools()
    ]


def _print_once(pools: Sequence[Watched]) -> int:
    readers = [PoolReader(pool.runtime) for pool in pools]
    before = [reader.next(None) for reader in readers]
    if any(reading.local for reading in before):
        time.sleep(_APART)
    readings = [reader.next(reading) for reader, reading in zip(readers, before, strict=True)]
    place = Display(shutil.get_terminal_size((_COLUMNS, 0)).columns, None, sys.stdout.encoding)
    for number, reading in enumerate(readings):
        lines = report(_of_all_time(reading), place, time.time())
        for line in ["", *lines] if number else lines:
            output.say(line)
    output.say("")
    output.say(f"rates: over {_APART:g} s; P50 and P95: since the pool's start")
    return code_for([reading.health for reading in readings])


def _of_all_time(reading: PoolReading) -> PoolReading:
    """The frame with the percentiles since the pool's start: those of the last minute are unknown."""
    return replace(reading, pace=replace(reading.pace, recent=reading.counts.jobs))
