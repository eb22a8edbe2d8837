"""Print what the local pools count and measure, in Prometheus' text format. Asks no store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from queuepool.board.counts import counts_of
from queuepool.cli import output
from queuepool.cli.local import runtime_of
from queuepool.cli.options import PLACE, Where, located, option, parsed
from queuepool.config.settings import PoolSettings
from queuepool.errors import NotRunning
from queuepool.metrics.samples import Sample, exposition, facts_of, of_pool, of_program, of_stopped

#: node_exporter runs as another user
_MODE = 0o644


@click.command()
@located(*PLACE)
@option(
    "--textfile",
    metavar="FILE",
    type=parsed(Path),
    help="Write to this file instead, for the textfile collector of node_exporter: FILE.prom",
)
def metrics(where: Where, textfile: Path | None) -> None:
    """Print the metrics of the local pools for Prometheus

    They come from the pools' boards: no store is asked. A pool that does not run has queuepool_up 0.
    """
    text = exposition([*of_program(), *(sample for pool in where.pools() for sample in _of(where, pool))])
    if textfile:
        _replace(textfile, text)
    else:
        output.raw(text)


def _of(where: Where, pool: PoolSettings) -> Iterator[Sample]:
    try:
        board = runtime_of(where, pool).board()
    except NotRunning:
        return of_stopped(pool.name)
    return of_pool(facts_of(pool.name, pool.connection.name, board), counts_of(board))


def _replace(path: Path, text: bytes) -> None:
    """Write a file beside it and rename that: a reader sees the old or the new one. Raises ``OSError``."""
    number, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(number, "wb") as file:
            file.write(text)
            os.fchmod(file.fileno(), _MODE)
        os.replace(draft, path)
    except OSError:
        os.unlink(draft)
        raise
