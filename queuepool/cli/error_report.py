"""How every error is reported: its line on standard error and its exit code."""

from __future__ import annotations

import click

from queuepool import errors
from queuepool.cli import output, usage
from queuepool.unix.exit_codes import (
    ALREADY_RUNNING,
    BROKEN_PIPE,
    CONFIG,
    FAILED,
    INTERRUPTED,
    NO_ROOM,
    NOT_RUNNING,
    USAGE,
)

_CODES: dict[type[BaseException], int] = {
    errors.NoRoom: NO_ROOM,
    errors.PoolRunning: ALREADY_RUNNING,
    errors.ConfigError: CONFIG,
    errors.StoreUnfit: CONFIG,
    errors.NotRunning: NOT_RUNNING,
}
#: reported in one line; anything else is a bug of ours and shows its traceback
TOLD = (click.UsageError, click.Abort, errors.QueuepoolError, OSError, KeyboardInterrupt)


def code_of(error: BaseException, pool: str = "") -> int:
    """Report an error, and which of several pools it concerns; returns the exit code. Raises errors not in ``TOLD``."""
    match error:
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED
        case BrokenPipeError():
            output.close()
            return BROKEN_PIPE
        case click.UsageError():
            output.complain(usage.line_of(error))
            return USAGE
        case errors.BootFailure():
            return _boot_failure(error)
        case errors.QueuepoolError():
            return _report(error, f"pool={pool} " if pool else "")
        case OSError():
            return _of_the_system(error)
    raise error


def _boot_failure(error: errors.BootFailure) -> int:
    if isinstance(error.__cause__, KeyboardInterrupt):
        return INTERRUPTED
    for line in error.trace.splitlines():
        output.complain(line)
    output.complain(f"queuepool: {error}")
    return FAILED


def _of_the_system(error: OSError) -> int:
    output.close()  # it may be the output that has no room
    output.complain(f"queuepool: {error.filename or 'output'}: {error.strerror or error}")
    return FAILED


def _report(error: errors.QueuepoolError, prefix: str) -> int:
    if isinstance(error, errors.ConfigError):
        # Each line names the file and the line, as compilers do.
        for line in str(error).split("\n"):
            output.complain(f"{prefix}{line}")
    elif isinstance(error, errors.StoreDown) and not isinstance(error, errors.StoreDenied):
        output.complain(f"{prefix}queuepool: the store cannot be reached or cannot serve now: {error}")
    else:
        output.complain(f"{prefix}queuepool: {error}")
    return _CODES.get(type(error), FAILED)
