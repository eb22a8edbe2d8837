"""The pools that ``top`` can show, and the command that means each of them."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings

#: most directories that are looked at
_MOST = 1000
#: the variable that names a configuration file: it is not that of a pool which was found by its directory
_FILE = "QUEUEPOOL_CONFIG"


class Watched(NamedTuple):
    """A local pool; ``program`` and ``flags`` make a command that means it, in this environment."""

    runtime: RuntimeDir
    program: Sequence[str]
    flags: Sequence[str]
    environ: Mapping[str, str]

    def command(self, words: Sequence[str]) -> list[str]:
        """The verb ``words[0]`` with its arguments."""
        return [*self.program, words[0], *self.flags, *words[1:]]

    @property
    def has_its_store(self) -> bool:
        """Whether such a command goes to the pool's own store: a pool may be known by its directory alone."""
        found = self.runtime.about()
        return bool(found and found.identity == self.runtime.store)


def found_in(folder: Path) -> list[Watched]:
    """The pools whose directories are in ``folder``, by name, whatever configuration they have.

    Commands find them by their directory alone: what a file there says of a configuration may be a job's.
    """
    environ = {key: value for key, value in os.environ.items() if key != _FILE}
    program = (sys.executable, "-m", "queuepool")
    return [
        Watched(
            RuntimeDir(PoolSettings(name=name, runtime_dir=folder), takes_any=True),
            program, ("--pool", name, "--runtime-dir", str(folder)), environ,
        )
        for name in sorted(_names(folder))
    ]  # fmt: skip


def _names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from [entry.name for entry in islice(entries, _MOST) if _is_a_pools(entry)]
    except OSError:
        return  # there is none yet


def _is_a_pools(entry: os.DirEntry[str]) -> bool:
    """Whether it is a directory that a pool of ours could use; root may look into those of all users."""
    found = entry.stat(follow_symlinks=False)
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return is_private and os.getuid() in (0, found.st_uid) and (Path(entry.path) / "master.pid").exists()
