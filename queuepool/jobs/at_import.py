"""Warns of jobs that are pushed while a pool imports its modules, usually by a line that was meant to run once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_WORDS = (
    "%s was dispatched during an import: every start of a worker or template would push it again; put what the module"
    " runs as a program under if __name__ == '__main__'"
)
_log = logging.getLogger("queuepool")
#: whether an import is under way; read at each push
is_under_way = False
#: Unix seconds when the last import ended; 0.0 = there was none. A forked worker inherits its template's
ended_at = 0.0
#: jobs warned of already: each is named once in a process
_named: set[str] = set()


@contextmanager
def under_way() -> Iterator[None]:
    """Wraps an import of the user's modules, during which pushes are warned of."""
    global is_under_way, ended_at
    is_under_way = True
    try:
        yield
    finally:
        is_under_way, ended_at = False, time.time()


def warn_of(names: Iterable[str]) -> None:
    """Called when jobs of these names were pushed during an import."""
    for name in dict.fromkeys(names):
        if name not in _named:
            _named.add(name)
            _log.warning(_WORDS, name)
