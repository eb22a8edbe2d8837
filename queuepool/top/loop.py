"""Look, draw, take keys: twice a second, and at once after a key. Some keys run a verb of the command line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.top.frame import frame, table_of
from queuepool.top.reading import PoolReader, PoolReading
from queuepool.top.screen import Screen
from queuepool.top.view import KeyCommand, Mode, View, asked, command_for, moved

#: seconds between two looks at the board
PERIOD = 0.5
_OTHER_STORE = "refused: the pool's store is not this command's; run queuepool top with the pool's -c FILE or --url URL"
#: most bytes of a verb's output that are read
_MOST_OUTPUT = 4096
#: most directories that are looked at
_MOST_FOLDERS = 1000
#: names a configuration file, which is not that of a pool found by its directory
_FILE = "QUEUEPOOL_CONFIG"


class Top:
    """The loop; ``find`` gives the pools to choose from, at least one: pools come and go."""

    def __init__(self, screen: Screen, find: Callable[[], Sequence[Watched]]) -> None:
        self._screen = screen
        self._find = find
        self._view = View()
        self._verb = Verb()
        self._readers: dict[Path, PoolReader] = {}
        self._readings: dict[Path, PoolReading] = {}
        self._asked_of: Watched | None = None
        self._pools = find()
        self._next_look = 0.0

    def run(self) -> None:
        """Run until a key ends it, or the terminal is gone."""
        while not self._view.has_ended:
            reading = self._look()
            try:
                place = self._screen.place()
            except OSError:
                return
            self._screen.draw(frame(reading, self._view, place, time.time(), len(self._pools)))
            for key in self._screen.keys(self._next_look - time.monotonic()):
                self._take(key, reading)

    @property
    def _pool(self) -> Watched:
        return self._pools[min(self._view.pool, len(self._pools) - 1)]

    def _look(self) -> PoolReading:
        """The reading to show, a new one if it is time."""
        if note := self._verb.result():
            self._view = replace(self._view, note=note)
        is_due = time.monotonic() >= self._next_look
        if is_due:
            self._next_look = time.monotonic() + PERIOD
            self._pools = self._find() or self._pools
        path = self._pool.runtime.path
        before = self._readings.get(path)
        if before is None or (is_due and not self._view.is_frozen):
            reader = self._readers.setdefault(path, PoolReader(self._pool.runtime))
            self._readings = {path: reader.next(before)}
        return self._readings[path]

    def _take(self, key: str, reading: PoolReading) -> None:
        view = self._view
        if view.mode is Mode.QUESTION and key == "y" and view.command and self._asked_of:
            self._run(view.command, self._asked_of)
            return
        rows = table_of(reading, view).items
        chosen = rows[min(view.row, len(rows) - 1)] if rows else None
        running = reading.running.overview if reading.running else None
        command = command_for(key, running, chosen) if view.mode is Mode.TABLES else None
        if command and command.needs_store and not self._pool.has_its_store:
            self._view = replace(view, note=_OTHER_STORE)
        elif command:
            self._asked_of = self._pool
            self._view = asked(view, command)
        else:
            self._view = moved(view, key, len(self._pools), len(rows))

    def _run(self, command: KeyCommand, pool: Watched) -> None:
        name = f"queuepool {' '.join(word for word in command.words if word != '--')}"
        note = self._verb.start(pool.command(command.words), name, pool.environ)
        self._view = replace(self._view, mode=Mode.TABLES, command=None, note=note)


class Verb:
    """Runs one verb at a time, in another process: the store may be away, and the screen must not wait."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._words = ""

    def start(self, words: Sequence[str], name: str, environ: Mapping[str, str]) -> str:
        """Start it; returns what to show. ``name`` is what it is called on the screen."""
        if self._child:
            return f"still running: {self._words}"
        self._words = name
        # A session of its own: Ctrl-C is meant for the screen.
        self._child = subprocess.Popen(
            words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        return f"running: {name}"

    def result(self) -> str | None:
        """What it printed last, once it has ended; ``None`` before that, and if there is none."""
        if not self._child or self._child.poll() is None:
            return None
        with self._child as child:
            assert child.stdout
            lines = child.stdout.read(_MOST_OUTPUT).decode("utf-8", "replace").strip().splitlines()
            self._child = None
        words = lines[-1] if lines else self._words
        return f"failed with exit code {child.returncode}: {words}" if child.returncode else words


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

    Commands find them by their directory alone: a job may have written what a file there holds about a configuration.
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
            yield from [entry.name for entry in islice(entries, _MOST_FOLDERS) if _is_a_pools(entry)]
    except OSError:
        return  # there is none yet


def _is_a_pools(entry: os.DirEntry[str]) -> bool:
    """Whether it is a directory that a pool of ours could use; root may look into those of all users."""
    found = entry.stat(follow_symlinks=False)
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return is_private and os.getuid() in (0, found.st_uid) and (Path(entry.path) / "master.pid").exists()
