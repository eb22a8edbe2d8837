"""Scale the local pools: by order, for a time, or by themselves between bounds."""

from __future__ import annotations

import re
import time
from functools import partial
from math import ceil
from typing import NamedTuple

import click

from queuepool.board.board import Board
from queuepool.board.requests import Change, Pin, ScaleOrder, fitted, is_carried_out, order_of, order_words, word_of
from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.acted import ActedOn, note_local
from queuepool.cli.local import of_running
from queuepool.cli.options import PLACE, Where, located, option, parsed
from queuepool.cli.targets import Elsewhere, reaching
from queuepool.cli.waiting import within
from queuepool.config.values import some_seconds
from queuepool.errors import QueuepoolError
from queuepool.unix.exit_codes import OK

#: seconds within which the master must do what the board requests
_TIMEOUT = 5.0


class _ScaleWords(NamedTuple):
    """An order, and its words as they were typed: a command to another host carries those."""

    words: str
    order: ScaleOrder | Change


def _scale_words(raw: str) -> _ScaleWords:
    return _ScaleWords(raw, order_of(raw))


class _Signed(click.Command):
    """Takes ``-2`` for an argument, where click would look for a flag of that name."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        numbers = [word for word in args if re.fullmatch("-[0-9]+", word)]
        if numbers and "--" not in args:
            args = [*(word for word in args if word not in numbers), "--", *numbers]
        return super().parse_args(context, args)


@click.command(cls=_Signed)
@located(*PLACE)
@reaching
@click.argument("order", metavar="N", type=parsed(_scale_words))
@option("--for", "seconds", metavar="TIME", type=parsed(some_seconds), help="End this order after a time: 1h")
def scale(where: Where, order: _ScaleWords, seconds: float | None, elsewhere: Elsewhere | None) -> int:
    """Scale each local pool to N workers

    N is a number, or +4 or -2 for as many more or fewer. With auto, a pool that has min_workers or max_workers scales
    by itself again, and any other returns to the workers of its configuration; 2..16 sets other bounds, too. All this
    is forgotten when the pool is started again.
    """
    (words, wanted), lasts = order, ceil(seconds or 0.0)
    if seconds and not isinstance(wanted, (Pin, Change)):
        raise click.UsageError("--for goes with a number of workers")
    if elsewhere:
        from queuepool.cli.remote import command  # imported here: local pools need no store

        return command(where, elsewhere, "scale", {"order": words, "seconds": lasts})
    boards = of_running(where, lambda runtime: (runtime, runtime.board(write=True)))
    orders = [_fitted(runtime.name, board, wanted, lasts) for runtime, board in boards]
    for (_, board), each in zip(boards, orders, strict=True):
        board.header.scale = word_of(each)
    for (runtime, board), each in zip(boards, orders, strict=True):
        if not within(_TIMEOUT, partial(is_carried_out, each, board.header)):
            raise QueuepoolError(f"the master of pool {runtime.name!r} (pid {board.name.pid}) does not answer")
        output.say(f"pool {runtime.name} {_outcome(board, each)}")
    note_local(where, f"scale {order_words(words, lasts)}", [ActedOn.of(runtime) for runtime, _ in boards])
    return OK


def _fitted(name: str, board: Board, order: ScaleOrder | Change, seconds: int) -> ScaleOrder:
    try:
        return fitted(order, board, seconds)
    except ValueError as error:
        raise click.BadParameter(f"pool {name} {error}", param_hint="N") from None


def _outcome(board: Board, order: ScaleOrder) -> str:
    """What the pool has now, in words."""
    header = board.header
    has = f"has {output.counted(header.target, 'worker')}"
    if isinstance(order, Pin):
        has = f"has {output.counted(order.workers, 'worker')}"
        if order.seconds:
            return f"{has} until {iso(time.time() + order.seconds)}"
        return f"{has} until queuepool scale auto" if header.most else has
    return f"{has}, and scales by itself between {header.fewest} and {header.most}" if header.most else has
