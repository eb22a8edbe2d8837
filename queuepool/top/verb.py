"""A verb of the command line, run for a key: ``top`` itself only reads."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

#: most bytes of a verb's output that are read
_MOST = 4096


class Verb:
    """One at a time, in a process of its own: the store may be away, and the screen goes on."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._words = ""

    def start(self, words: Sequence[str], name: str, environ: Mapping[str, str]) -> str:
        """Start it; returns what to show. ``name`` is what it is called on the screen."""
        if self._child:
            return f"still running: {self._words}"
        self._words = name
        # A session of its own: Ctrl-C is meant for the screen.
        self._child = subprocess.Popen(
            words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        return f"running: {name}"

    def result(self) -> str | None:
        """What it printed last, once it has ended; ``None`` before that, and if there is none."""
        if not self._child or self._child.poll() is None:
            return None
        with self._child as child:
            assert child.stdout
            lines = child.stdout.read(_MOST).decode("utf-8", "replace").strip().splitlines()
            self._child = None
        words = lines[-1] if lines else self._words
        return f"failed with exit code {child.returncode}: {words}" if child.returncode else words
