"""Our logger in a pool's processes: whatever user code does to loggers and handlers, the pool's log goes on.

User code may configure logging at any time: a job that migrates a database by alembic switches off every logger that
its file does not name. So our handler is not in any logger's list, and nothing needs repair after a job.
"""

from __future__ import annotations

import logging

from queuepool.log.handlers import Stream

#: our own logger; a record of another name is the application's
OURS = "queuepool"


class OwnLogger(logging.Logger):
    """Writes records of level ``least`` or above to ``out``. Other settings have no effect on it."""

    out: Stream
    least: int

    @property
    def disabled(self) -> bool:
        return False

    @disabled.setter
    def disabled(self, _: bool) -> None:
        """``logging.config`` switches off what it does not configure."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - as in `logging`
        return level >= self.least  # also after ``logging.disable``

    def getEffectiveLevel(self) -> int:  # noqa: N802
        return self.least

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802
        self.out.handle(record)
        super().callHandlers(record)  # those that user code has added


class Passing(logging.Handler):
    """Passes an application's records on to the log. User code may set a level, a format or a filter on it alone."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = logging.getLogger(OURS)
        if record.name != OURS and isinstance(logger, OwnLogger):
            logger.out.handle(record)


def own_logger() -> OwnLogger | None:
    """``None`` where there is no pool's log, as in a producer."""
    logger = logging.getLogger(OURS)
    return logger if isinstance(logger, OwnLogger) else None


def become(out: Stream, least: int) -> None:
    """Make the logger write to ``out`` from now on; its former descriptor is closed."""
    logger = logging.getLogger(OURS)
    if isinstance(logger, OwnLogger):
        logger.out.end()  # no job must find its descriptor open
    logger.__class__ = OwnLogger
    assert isinstance(logger, OwnLogger)
    logger.out, logger.least, logger.propagate = out, least, False
