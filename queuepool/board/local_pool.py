"""A pool of this host, from its directory alone: works while the store is away or the master is stopped."""

from __future__ import annotations

import os
from typing import Any

from queuepool.board.board import Board
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import overview


def board_of(runtime: RuntimeDir) -> Board:
    """The running pool's board. Raises ``NotRunning``, ``ConfigError``, and ``PermissionError`` for another user's."""
    if runtime.path.exists() and not os.access(runtime.path, os.R_OK | os.X_OK):
        raise PermissionError(13, "belongs to another user", str(runtime.path))
    return runtime.board()


def facts_of(name: str, runtime: RuntimeDir, board: Board) -> dict[str, Any]:
    """What the board and the pool's directory say, ready for JSON: that of ``overview`` and of ``About``."""
    found = runtime.about()
    return overview(name, board) | {"directory": str(runtime.path)} | (found.facts() if found else {})
