"""A table that fits a terminal, as those of ``top`` do: columns needed least are left out, and long texts are cut."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from queuepool.top.text import fitted, width

#: columns that are of no use when cut
WHOLE = frozenset({"id", "pid", "lock", "at", "ends", "failed_at", "last", "next", "next_utc", "due", "utc"})
#: shorter titles, where the room is short
_SHORT = {
    "oldest_pending": "oldest", "quarantined": "quar.", "per_minute": "/min", "given_back": "back",
    "ready_most": "most", "oldest_most": "most",
}  # fmt: skip
_GAP = "  "
#: columns that a text keeps at least while others can be left out, and when none can any more
_LEAST, _FEWEST = 12, 5


class Columns:
    """Which columns are shown; ``room`` is the width of the terminal, ``None`` where there is none."""

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        room: int | None,
        spare: Sequence[str],
        whole: Container[str],
    ) -> None:
        """``spare``: what may be left out, in this order; ``whole``: what is not cut."""
        self._room = room
        self._whole = whole
        self._names = names
        self._places = list(range(len(names)))
        self.titles = [name.upper() for name in names]
        self.left_out: list[str] = []
        if room is not None and not self._fits(_widths([self.titles, *rows]), room):
            self.titles = [_SHORT.get(name, name).upper() for name in names]
            self._leave_out(_widths([self.titles, *rows]), room, spare)

    def lines(self, rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """Each row as a line."""
        widths = _widths(rows) if self._room is None else self._cut(_widths(rows), self._room)
        for row in rows:
            cells = (self._cell(row[place], widths[place]) for place in self._places)
            yield _GAP.join(cells).rstrip()

    def _cell(self, text: str, columns: int) -> str:
        return text.ljust(columns) if self._room is None else fitted(text, columns)

    def _leave_out(self, widths: Sequence[int], room: int, spare: Sequence[str]) -> None:
        for name in spare:
            least = [self._least(place, wide, _LEAST) for place, wide in enumerate(widths)]
            if self._fits(least, room):
                return
            if name in self._names:
                self._places.remove(self._names.index(name))
                self.left_out.append(name)

    def _cut(self, widths: Sequence[int], room: int) -> list[int]:
        """These widths, the widest made less until they fit, or none can be any more."""
        found = list(widths)
        for shortest in (_LEAST, _FEWEST):
            least = [self._least(place, wide, shortest) for place, wide in enumerate(widths)]
            while not self._fits(found, room):
                wide = [place for place in self._places if found[place] > least[place]]
                if not wide:
                    break
                found[max(wide, key=found.__getitem__)] -= 1
        return found

    def _least(self, place: int, wide: int, shortest: int) -> int:
        return wide if self._names[place] in self._whole else min(wide, shortest)

    def _fits(self, widths: Sequence[int], room: int) -> bool:
        return sum(widths[place] for place in self._places) + len(_GAP) * (len(self._places) - 1) <= room


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, column)) for column in zip(*rows, strict=True)]
