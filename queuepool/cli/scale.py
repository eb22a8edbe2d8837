"""Scale the local pools: by order, for a time, or by themselves between bounds."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import partial
from math import ceil

import click

from queuepool.board.board import Board
from queuepool.board.requests import Between, Pin, ScaleOrder, Unpin, word_of
from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.local import of_running
from queuepool.cli.options import PLACE, Where, located, option, parsed
from queuepool.cli.pools import within
from queuepool.config.values import shown, some_seconds
from queuepool.errors import QueuepoolError

#: seconds in which the master must do what the board requests
_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class _Change:
    """So many workers more, or fewer."""

    workers: int


def _order(raw: str) -> ScaleOrder | _Change:
    if raw == "auto":
        return Unpin()
    if bounds := re.fullmatch(r"([0-9]{1,9})\.\.([0-9]{1,9})", raw):
        fewest, most = map(int, bounds.groups())
        if not 1 <= fewest <= most:
            raise ValueError(f"{shown(raw)} are no bounds: write the fewest workers, at least 1, and the most: 2..16")
        return Between(fewest, most)
    if re.fullmatch(r"[+-][0-9]{1,9}", raw):
        return _Change(int(raw))
    if not re.fullmatch(r"[0-9]{1,9}", raw):
        raise ValueError(f"{shown(raw)} is not a whole number, nor +4, -2, auto, or bounds as 2..16")
    return Pin(int(raw))


class _Signed(click.Command):
    """Takes ``-2`` for an argument, where click would look for a flag of that name."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        numbers = [word for word in args if re.fullmatch("-[0-9]+", word)]
        if numbers and "--" not in args:
            args = [*(word for word in args if word not in numbers), "--", *numbers]
        return super().parse_args(context, args)


@click.command(cls=_Signed)
@located(*PLACE)
@click.argument("order", metavar="N", type=parsed(_order))
@option("--for", "seconds", metavar="TIME", type=parsed(some_seconds), help="End this order after a time: 1h")
def scale(where: Where, order: ScaleOrder | _Change, seconds: float | None) -> None:
    """Scale each local pool to N workers

    N is a number, or +4 or -2 for as many more or fewer. With auto, a pool that has min_workers or max_workers scales
    by itself again, and any other returns to the workers of its configuration; 2..16 sets other bounds, too. All this
    is forgotten when the pool is started again.
    """
    if seconds and not isinstance(order, (Pin, _Change)):
        raise click.UsageError("--for goes with a number of workers")
    boards = of_running(where, lambda runtime: (runtime.name, runtime.board(write=True)))
    orders = [_checked(name, board, order, ceil(seconds or 0.0)) for name, board in boards]
    for (_, board), each in zip(boards, orders, strict=True):
        board.header.scale = word_of(each)
    for (name, board), each in zip(boards, orders, strict=True):
        if not within(_TIMEOUT, partial(_is_done, board, each)):
            raise QueuepoolError(f"the master of pool {name!r} (pid {board.name.pid}) does not answer")
        output.say(f"pool {name} {_outcome(board, each)}")


def _checked(name: str, board: Board, order: ScaleOrder | _Change, seconds: int) -> ScaleOrder:
    """The order for this pool. Raises ``BadParameter`` if it is impossible there."""
    match order:
        case Pin(workers):
            order = Pin(workers, seconds)
        case _Change(change):
            workers = board.header.target
            if workers + change < 0:
                raise click.BadParameter(f"pool {name} has only {output.counted(workers, 'worker')}", param_hint="N")
            order = Pin(workers + change, seconds)
        case Between() if not board.header.most:
            why = f"pool {name} does not scale by itself: give it max_workers or min_workers, and start it again"
            raise click.BadParameter(why, param_hint="N")
    most = order.workers if isinstance(order, Pin) else order.most if isinstance(order, Between) else 0
    if most > board.max_workers:
        room = f"pool {name} was started with room for {board.max_workers} workers"
        raise click.BadParameter(room, param_hint="N")
    return order


def _is_done(board: Board, order: ScaleOrder) -> bool:
    header = board.header
    if header.scale:
        return False  # the master has not taken it yet
    match order:
        case Pin(workers, seconds):
            return header.target == workers and bool(not seconds or header.pinned_until)
        case Between(fewest, most):
            return not header.pinned and (header.fewest, header.most) == (fewest, most)
        case _:
            return not header.pinned


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
