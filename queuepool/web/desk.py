"""What all pages and actions share: the configuration, its stores, the boards of this host, what was done lately."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from queuepool.config.loader import Config
from queuepool.errors import StoreError
from queuepool.jobs.client import Queue
from queuepool.operating.carrying_out import journaled
from queuepool.operating.choice import EveryPool
from queuepool.unix.escape import escaped
from queuepool.web.agreements import Agreements
from queuepool.web.asked import Asked
from queuepool.web.boards import LocalPools
from queuepool.web.connections import StoreLink
from queuepool.web.errands import Errands
from queuepool.web.guard import Refusal
from queuepool.web.remembered import ListPlaces
from queuepool.web.submissions import MOST_OF_ONE, Submissions
from queuepool.web.threads import WebThreads
from queuepool.web.visitors import Visitor

T = TypeVar("T")
_log = logging.getLogger("queuepool")


class Desk:
    """One dashboard. Safe for threads; raises ``ConfigError`` if a driver is missing."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.web = config.web
        self.choice = EveryPool(config)
        self.boards = LocalPools(config.pools)
        self.links = {one.name: StoreLink(self.choice, one) for one in self.choice.connections()}
        # As many as may wait for each store, and some for what names none.
        self.threads = WebThreads(MOST_OF_ONE * (len(self.links) + 1))
        self.errands = Errands()
        self.agreements = Agreements()
        self.places = ListPlaces()
        #: held by the export under way: one at a time, as each may take a lot of memory
        self.exporting = threading.Lock()
        self.submissions = Submissions(self.threads.acts)

    def link(self, name: str) -> StoreLink:
        """The connection of this name; the only one for an empty name. Raises ``Refusal``."""
        if not name and len(self.links) == 1:
            return next(iter(self.links.values()))
        if name not in self.links:
            raise Refusal(404, f"there is no such connection, only: {', '.join(self.links)}")
        return self.links[name]

    def chosen(self, name: str) -> list[StoreLink]:
        """The connection of this name, or all of them for an empty one."""
        return [self.link(name)] if name else list(self.links.values())

    def place_of(self, asked: Asked) -> str:
        """The connection on which an action acts; empty if it names none, or if there is no other."""
        return (asked.parts.get("connection") or asked.text("connection")) if len(self.links) > 1 else ""

    def note(self, link: StoreLink, visitor: Visitor, verb: str, subject: str, count: int | None = None) -> str:
        """Add what was done to the journal and to the log; returns why it is not in the journal, if it is not."""
        by = by_of(visitor)
        of_count = "" if count is None else f" count={count}"
        _log.info("dashboard: %s %s%s by=%s", verb, escaped(subject), of_count, by)
        try:
            return link.do(lambda queue: journaled(queue.stores, by, verb, subject, count))
        except StoreError as error:
            return str(error)

    def close(self) -> None:
        """Begin nothing more, and close the stores, after the actions and batches under way. Does not wait for them."""
        self.errands.close()
        self.threads.close()
        if self.errands.are_under_way() or self.submissions.are_under_way():
            threading.Thread(target=self._close_after_them, name="queuepool-close").start()
        else:
            self._close_stores()

    def _close_after_them(self) -> None:
        self.threads.join_acts()
        self.errands.join()
        self._close_stores()

    def _close_stores(self) -> None:
        for link in self.links.values():
            link.close()


def by_of(visitor: Visitor) -> str:
    """Who a journal names: a user of the dashboard, on the host of this."""
    return f"{escaped(visitor.name) or 'dashboard'}@{socket.gethostname()} (web)"


@dataclass
class Gathered:
    """Reads connections; one that is away is reported, and hides no other."""

    #: what could not be read, and why
    problems: list[str] = field(default_factory=list)
    #: whether any could be read
    is_any: bool = False

    def each(self, links: list[StoreLink], read: Callable[[StoreLink, Queue], T]) -> Iterator[T]:
        """What ``read`` finds on each."""
        for link in links:
            try:
                yield link.ask(lambda queue, link=link: read(link, queue))  # type: ignore[misc]
                self.is_any = True
            except StoreError as error:
                self.problems.append(f"connection {link.name}: {error}")

    def one(self, link: StoreLink, read: Callable[[Queue], T], otherwise: T) -> T:
        """What ``read`` finds on this one."""
        return next(self.each([link], lambda _, opened: read(opened)), otherwise)

    def facts(self) -> dict[str, Any]:
        """Ready for a page, with its status."""
        return {"problems": self.problems, "status": 503 if self.problems and not self.is_any else 200}
