"""The local pool that a verb means."""

from __future__ import annotations

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli.options import Where
from queuepool.config.settings import PoolSettings


def runtime_of(where: Where, pool: PoolSettings | None = None) -> RuntimeDir:
    """The pool's directory. One named on the command line is taken, whatever pool is there."""
    return RuntimeDir(pool or where.pool(), takes_any="pool.runtime_dir" in where.overrides)
