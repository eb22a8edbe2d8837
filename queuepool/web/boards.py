"""The pools of this host, as their boards show them: also while their store is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.errors import ConfigError
from queuepool.top.reading import PoolReader, PoolReading

#: seconds for which a reading counts as new
_LASTS = 0.5


class LocalReading(NamedTuple):
    """One pool of the configuration on this host; without a ``reading`` it cannot be read: ``problem`` says why."""

    settings: PoolSettings
    runtime: RuntimeDir
    reading: PoolReading | None
    problem: str = ""

    @property
    def runs(self) -> bool:
        """Whether it runs, as far as can be seen."""
        return self.reading is None or self.reading.running is not None


class LocalPools:
    """Reads the boards, at most twice a second, however many ask. Safe for threads."""

    def __init__(self, pools: Sequence[PoolSettings]) -> None:
        runtimes = [(pool, RuntimeDir(pool)) for pool in pools]
        self._readers = [(pool, runtime, PoolReader(runtime)) for pool, runtime in runtimes]
        self._lock = threading.Lock()
        self._read_at = 0.0
        self._found: list[LocalReading] = []

    def readings(self) -> list[LocalReading]:
        """All of them, in the order of the configuration."""
        with self._lock:
            if not self._found or time.monotonic() - self._read_at >= _LASTS:
                before = {one.settings.name: one.reading for one in self._found}
                self._found = [self._read(*reader, before) for reader in self._readers]
                self._read_at = time.monotonic()
            return list(self._found)

    def runtimes_of(self, connection: ConnectionSettings) -> list[RuntimeDir]:
        """The directories of the pools on this connection."""
        return [runtime for pool, runtime, _ in self._readers if pool.connection == connection]

    def knows_lost(self, connection: ConnectionSettings) -> bool:
        """Whether a pool of this host finds its store away."""
        found = [one.reading.running for one in self._on(connection) if one.reading]
        return any(pool.overview.store_lost for pool in found if pool)

    def _on(self, connection: ConnectionSettings) -> list[LocalReading]:
        return [one for one in self.readings() if one.settings.connection == connection]

    def _read(
        self, pool: PoolSettings, runtime: RuntimeDir, reader: PoolReader, before: dict[str, PoolReading | None]
    ) -> LocalReading:
        try:
            return LocalReading(pool, runtime, reader.next(before.get(pool.name)))
        except (ConfigError, OSError) as error:  # another user's, or not ours to read
            return LocalReading(pool, runtime, None, str(error))
