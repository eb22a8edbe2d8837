"""Look, draw, take keys: twice a second, and at once after a key."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from queuepool.top.frame import frame, table_of
from queuepool.top.keys import command_for
from queuepool.top.reading import Reader, Reading
from queuepool.top.screen import Screen
from queuepool.top.verb import Verb
from queuepool.top.view import Command, Mode, View, asked, moved
from queuepool.top.watched import Watched

#: seconds between two looks at the board
PERIOD = 0.5
_OTHER_STORE = (
    "refused: the pool works on another store than this command; use queuepool top with its -c FILE or --url URL"
)


class Top:
    """``find`` gives the pools to choose from, at least one: pools come and go."""

    def __init__(self, screen: Screen, find: Callable[[], Sequence[Watched]]) -> None:
        self._screen = screen
        self._find = find
        self._view = View()
        self._verb = Verb()
        self._readers: dict[Path, Reader] = {}
        self._readings: dict[Path, Reading] = {}
        self._asked_of: Watched | None = None
        self._pools = find()
        self._next_look = 0.0

    def run(self) -> None:
        """Until it is ended by a key, or the terminal is gone."""
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

    def _look(self) -> Reading:
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
            reader = self._readers.setdefault(path, Reader(self._pool.runtime))
            self._readings = {path: reader.next(before)}
        return self._readings[path]

    def _take(self, key: str, reading: Reading) -> None:
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

    def _run(self, command: Command, pool: Watched) -> None:
        name = f"queuepool {' '.join(word for word in command.words if word != '--')}"
        note = self._verb.start(pool.command(command.words), name, pool.environ)
        self._view = replace(self._view, mode=Mode.TABLES, command=None, note=note)
