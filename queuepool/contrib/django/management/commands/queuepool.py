"""``manage.py queuepool VERB …``: every verb of the command line, with the settings of the project."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError

from queuepool.contrib.django import program
from queuepool.contrib.django.handover import written
from queuepool.contrib.django.settings import source

_NO_MODULE = (
    "DJANGO_SETTINGS_MODULE is not set: workers are separate processes, and find the settings only by that name"
)


class Command(BaseCommand):  # type: ignore[misc]
    """Hands over to the command line, in a process without the project's code."""

    help = "Run background jobs: every verb of queuepool, with QUEUEPOOL in the settings as its configuration"
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> NoReturn:
        """Become ``queuepool``: signals and exit codes are its own."""
        words = _words(_without_djangos(argv[2:]))
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(sys.executable, words)

    def print_help(self, prog_name: str, subcommand: str) -> NoReturn:
        """``manage.py help queuepool``."""
        self.run_from_argv([prog_name, subcommand, "--help"])

    def add_arguments(self, parser: Any) -> None:
        """For ``call_command``."""
        parser.add_argument("words", nargs=argparse.REMAINDER, metavar="VERB")

    def handle(self, *args: Any, words: list[str], **options: Any) -> None:
        """``call_command("queuepool", "size", stdout=out)``. Raises ``CommandError`` if the verb fails, with its error.

        What is printed comes to ``stdout`` when the verb has ended. ``start`` prints to the process's own.
        """
        command = _words(words)
        code, error = _run(command) if words[:1] == ["start"] else self._redirected(command, options.get("stdout"))
        if code:
            cause = f": {error}" if error else ""
            raise CommandError(f"queuepool {' '.join(words)}: exit code {code}{cause}", returncode=code)

    def _redirected(self, command: list[str], stdout: Any) -> tuple[int, str]:
        """As ``_run``; what the verb prints is written where Django says, and its last error is returned."""
        with TemporaryFile("w+", encoding="utf-8") as printed:
            code, error = _run(command, printed if stdout else None, self._complain)
            printed.seek(0)
            self.stdout.write(printed.read(), ending="")
        return code, error

    def _complain(self, line: str) -> None:
        self.stderr.write(line, style_func=str, ending="")


def _run(command: list[str], stdout: Any = None, complain: Callable[[str], None] | None = None) -> tuple[int, str]:
    """The exit code, and the last line of standard error, each of which ``complain`` gets at once."""
    last = ""
    about: dict[str, Any] = {"stdout": stdout, "stderr": subprocess.PIPE if complain else None}
    with subprocess.Popen(command, pass_fds=[int(command[3])], text=True, errors="replace", **about) as process:
        for line in process.stderr or ():
            if complain:
                complain(line)
            last = line.strip() or last
    return process.returncode, last.removeprefix("queuepool: ")


def _words(verb: list[str]) -> list[str]:
    """The command, whose descriptor is inherited. Raises ``CommandError``."""
    if not os.environ.get("DJANGO_SETTINGS_MODULE"):
        raise CommandError(_NO_MODULE)
    # -P: the program's directory has a package of the name `django`, and must not be on the path.
    return [sys.executable, "-P", str(Path(program.__file__)), str(written(source())), *verb]


def _without_djangos(words: list[str]) -> list[str]:
    """The words without the options that ``manage.py`` itself has handled."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--pythonpath")
    return parser.parse_known_args(words)[1]
