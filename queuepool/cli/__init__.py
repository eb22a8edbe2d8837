"""The command line, ``queuepool VERB``: this is where a process begins and how it ends."""

from __future__ import annotations

import os
import sys

import click

from queuepool.cli import output
from queuepool.cli.exits import INTERRUPTED, TOLD, code_of


def main() -> None:
    """The console script."""
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # a second one, while the first was dealt with
        code = INTERRUPTED
    if code == INTERRUPTED:
        os._exit(code)  # at once: a second Ctrl-C would find an interpreter half taken down
    sys.exit(code)


def run(args: list[str]) -> int:
    """One verb to its end; the exit code. What a person did wrong becomes a line, never a traceback."""
    try:
        output.open_streams()
        code = _invoke(args)
        output.flush()
    except TOLD as error:
        code = code_of(error)
    return code


def _invoke(args: list[str]) -> int:
    from queuepool.cli.verbs import verbs  # here: Ctrl-C while it is imported is a Ctrl-C like any other

    try:
        with verbs.make_context("queuepool", args) as context:
            return int(verbs.invoke(context) or 0)
    except click.exceptions.Exit as leave:  # after --help
        return leave.exit_code
