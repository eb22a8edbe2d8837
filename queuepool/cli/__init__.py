"""The command line, ``queuepool VERB``: where a process starts and how it ends."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

from queuepool.cli import output
from queuepool.cli.error_report import TOLD, code_of
from queuepool.cli.group import COMPLETE
from queuepool.unix import collector, signals
from queuepool.unix.exit_codes import INTERRUPTED


def main() -> None:
    """The console script."""
    try:
        collector.expect_imports()
        signals.handle_ctrl_c()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # a second Ctrl-C while the first was being handled
        code = INTERRUPTED
    if code != INTERRUPTED:  # else exit at once: a second Ctrl-C could come in between
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    # Not by sys.exit: it waits for the threads and the exit handlers of the user's modules, which may never end.
    os._exit(code)


def run(args: list[str]) -> int:
    """Run one verb; returns the exit code. A user's mistake becomes one line, never a traceback."""
    try:
        output.open_streams()
        code = _invoke(args)
        output.flush()
    except TOLD as error:
        code = code_of(error)
    return code


def _invoke(args: list[str]) -> int:
    from queuepool.cli.verbs import verbs  # imported here: Ctrl-C during the import is heeded, too

    if asked := os.environ.get(COMPLETE):
        from queuepool.cli.completion import answer

        return answer(verbs, asked)
    try:
        with verbs.make_context("queuepool", args) as context:
            return int(verbs.invoke(context) or 0)
    except click.exceptions.Exit as leave:  # after --help
        return leave.exit_code
