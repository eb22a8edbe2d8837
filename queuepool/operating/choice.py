"""Which pools of a configuration an operator means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from queuepool.config.loader import Config
from queuepool.config.settings import ConnectionSettings, PoolSettings


class Choice(Protocol):
    """All pools of a configuration, or one of them."""

    @property
    def is_part(self) -> bool:
        """Whether one of several was chosen."""

    def load(self) -> Config:
        """The whole configuration."""

    def pools(self) -> Sequence[PoolSettings]:
        """Those that are meant."""

    def connections(self) -> Sequence[ConnectionSettings]:
        """Their connections, each once."""

    def queues(self, connection: ConnectionSettings | None = None) -> tuple[str, ...]:
        """Their queues, each once; those on this connection, if one is given."""

    def require(self, *queues: str) -> None:
        """Raise an error if only other pools than the chosen one serve these queues."""


@dataclass(frozen=True, slots=True)
class EveryPool:
    """All pools of a configuration: nothing was left out."""

    config: Config
    is_part: bool = False

    def load(self) -> Config:
        return self.config

    def pools(self) -> Sequence[PoolSettings]:
        return self.config.pools

    def connections(self) -> list[ConnectionSettings]:
        return list(dict.fromkeys(pool.connection for pool in self.config.pools))

    def queues(self, connection: ConnectionSettings | None = None) -> tuple[str, ...]:
        return queues_of(self.config.pools, connection)

    def require(self, *queues: str) -> None:
        pass


def queues_of(pools: Sequence[PoolSettings], connection: ConnectionSettings | None = None) -> tuple[str, ...]:
    """The queues of these pools, each once; of those on this connection, if one is given."""
    meant = [pool for pool in pools if connection in (None, pool.connection)]
    return tuple(dict.fromkeys(queue for pool in meant for queue in pool.queues))
