"""What the steward and the command line request of the master through the board; each request counts once."""

from __future__ import annotations

from queuepool.board.slot import Header


class Requests:
    """The requests; only the master reads them."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._restarts = 0
        self._news = (0, 0)

    def workers(self) -> int | None:
        """How many workers are requested; ``None`` without a request."""
        asked = self._header.scale
        if not asked:
            return None
        self._header.scale = 0
        return asked - 1

    def restart(self) -> bool:
        """Whether a restart was broadcast since the last call."""
        said, before = self._header.restarts, self._restarts
        if said == before + 1:
            self._restarts = said
        elif said != before:  # overwritten by a job
            self._header.restarts = before
        return said == before + 1

    def have_news(self) -> bool:
        """Whether the workers have something new to read."""
        before, self._news = self._news, (self._header.orders, self._header.deferred_hooks)
        return before != self._news
