"""What the steward and the command line request of the master through the board; each request counts once."""

from __future__ import annotations

from queuepool.board.header import Header


class Requests:
    """The requests; only the master reads them."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._restarts = 0
        self._news = (0, 0)

    def workers(self) -> int | None:
        """How many workers are requested; ``None`` without a request."""
        requested = self._header.scale
        if not requested:
            return None
        self._header.scale = 0
        return requested - 1

    def restart(self) -> bool:
        """Whether a restart was broadcast since the last call."""
        requested, before = self._header.restarts, self._restarts
        if requested == before + 1:
            self._restarts = requested
        elif requested != before:  # overwritten by a job
            self._header.restarts = before
        return requested == before + 1

    def have_news(self) -> bool:
        """Whether the workers have something new to read."""
        before, self._news = self._news, (self._header.control_changes, self._header.deferred_hooks)
        return before != self._news
