"""A queue for tests whose database is in memory: it has no URL, and no other process could read it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import closing
from functools import cache

from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.migrate import migrate


def temporary_url() -> str:
    """The URL of this process's own queue, which lasts as long as the process."""
    return _url(os.getpid())


@cache
def _url(pid: int) -> str:
    folder = tempfile.mkdtemp(prefix="queuepool-test-")
    atexit.register(_remove, folder, pid)
    url = f"sqlite:///{folder}/queuepool.db"
    with closing(SqlClient(url, create=True)) as client:
        migrate(client)
    return url


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:  # not in a child that inherited it
        shutil.rmtree(folder, ignore_errors=True)
