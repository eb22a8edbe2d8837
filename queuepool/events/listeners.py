"""Event listeners, by event class. A listener that raises is logged; the job is unaffected."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from queuepool.unix import at_fork

if TYPE_CHECKING:
    from queuepool.events import Event

E = TypeVar("E", bound="Event")
Listener = Callable[[E], object]
_log = logging.getLogger("queuepool")


class Listeners:
    """Functions by the event class that they listen to, which includes the classes derived from it."""

    def __init__(self) -> None:
        self._by_class: dict[type[Event], list[Listener[Event]]] = defaultdict(list)
        self._wanted: dict[type[Event], bool] = {}

    def add(self, kind: type[E], listener: Listener[E]) -> None:
        """Register a listener for this class and the classes derived from it."""
        self._by_class[kind].append(listener)  # type: ignore[arg-type]
        self._wanted.clear()

    @property
    def is_empty(self) -> bool:
        """Whether there is no listener at all."""
        return not self._by_class

    def wants(self, kind: type[Event]) -> bool:
        """Whether any listener takes this class: do not spend the loop's time on an event without listeners."""
        if kind not in self._wanted:
            self._wanted[kind] = any(base in self._by_class for base in kind.__mro__)
        return self._wanted[kind]

    def emit(self, event: Event) -> bool:
        """Call every listener of the event's class and its bases; ``False`` when one of them returned ``False``."""
        agreed = True
        for base in type(event).__mro__:
            for listener in self._by_class.get(base, ()):
                agreed = _answer(listener, event) is not False and agreed
        return agreed


def _answer(listener: Listener[Event], event: Event) -> object:
    pid = os.getpid()
    try:
        return listener(event)
    except BaseException as error:  # noqa: BLE001 - even SystemExit: a listener must harm nothing
        at_fork.leave_if_copy(pid, error)
        name = getattr(listener, "__qualname__", repr(listener))
        _log.exception("listener %s raised for %s", name, type(event).__name__)
        return None
    finally:
        at_fork.leave_if_copy(pid)


#: The listeners of this process; ``on`` adds to them.
LISTENERS = Listeners()


def on(*kinds: type[E]) -> Callable[[Listener[E]], Listener[E]]:
    """Register the decorated function for these events, and for the classes derived from them."""

    def register(listener: Listener[E]) -> Listener[E]:
        for kind in kinds:
            LISTENERS.add(kind, listener)
        return listener

    return register
