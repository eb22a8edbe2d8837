"""``check`` of the address that a pool's web process listens on."""

from __future__ import annotations

from collections.abc import Iterator

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.config.values import address_of
from queuepool.errors import ConfigError, NotRunning
from queuepool.metrics.listener import problem_of
from queuepool.stores.finding import Finding, Grade


def inspect_address(pool: PoolSettings) -> Iterator[Finding]:
    """Whether the pool can listen on the address of its ``listen``, and who can connect there."""
    what, address = f"listen {pool.listen}", address_of(pool.listen)
    if _is_running(pool):
        yield Finding(Grade.OK, what, "the pool listens there")
    elif problem := problem_of(address):
        yield Finding(Grade.FAIL, what, problem)
    else:
        yield Finding(Grade.OK, what, "it is free")
    if not address.is_private:
        yield Finding(Grade.WARN, what, "is open to other hosts, and asks for no password")


def _is_running(pool: PoolSettings) -> bool:
    try:
        return RuntimeDir(pool).board().header.master_pid > 0
    except (NotRunning, ConfigError):
        return False
