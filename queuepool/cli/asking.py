"""The question before many jobs are touched: at a terminal only, and not with --force."""

from __future__ import annotations

import sys

import click

from queuepool.cli import output
from queuepool.unix.escape import escaped

FORCE = click.option("--force", is_flag=True, help="Do not ask for confirmation")


def has_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def is_declined(question: str, otherwise: str) -> bool:
    """Ask; after a no, say ``otherwise``. Raises ``click.Abort`` if there is no answer."""
    if click.confirm(escaped(question), err=True):
        return False
    output.complain(otherwise)
    return True
