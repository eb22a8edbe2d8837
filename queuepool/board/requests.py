"""What the steward and the command line ask of the master: it stands on the board, each request once."""

from __future__ import annotations

from queuepool.board.slot import Header


class Requests:
    """Read by the master alone."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._restarts = 0
        self._news = (0, 0)

    def workers(self) -> int | None:
        """How many there are to be from now on; ``None`` when nobody asks."""
        asked = self._header.scale
        if not asked:
            return None
        self._header.scale = 0
        return asked - 1

    def restart(self) -> bool:
        """Whether a restart was broadcast."""
        said, before = self._header.restarts, self._restarts
        if said == before + 1:
            self._restarts = said
        elif said != before:  # nonsense
            self._header.restarts = before
        return said == before + 1

    def have_news(self) -> bool:
        """Whether there is something new for the workers to read."""
        before, self._news = self._news, (self._header.orders, self._header.mourned)
        return before != self._news
