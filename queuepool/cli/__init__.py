"""The command line, ``queuepool VERB``: this is where a process begins and how it ends."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

from queuepool.cli import output
from queuepool.cli.error_report import TOLD, code_of
from queuepool.cli.group import COMPLETE
from queuepool.unix.exit_codes import INTERRUPTED


def main() -> None:
    """The console script."""
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # a second one, while the first was dealt with
        code = INTERRUPTED
    if code != INTERRUPTED:  # then at once: a second Ctrl-C would find us half gone
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    # Not by sys.exit: it waits for the threads and the exit handlers of the user's modules, which may never end.
    os._exit(code)


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

    if asked := os.environ.get(COMPLETE):
        from queuepool.cli.completion import answer

        return answer(verbs, asked)
    try:
        with verbs.make_context("queuepool", args) as context:
            return int(verbs.invoke(context) or 0)
    except click.exceptions.Exit as leave:  # after --help
        return leave.exit_code
