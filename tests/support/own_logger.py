"""The package's logger, which a pool's log takes over, left as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from queuepool.log import own_logger


@contextmanager
def restored() -> Iterator[logging.Logger]:
    found = logging.getLogger("queuepool")
    before = found.__class__, found.propagate, logging.lastResort
    yield found
    if own := own_logger():
        own.out.end()
    found.__class__, found.propagate, logging.lastResort = before
