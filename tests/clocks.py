"""A server's clock that a test sets: libfaketime, with an offset in a file that is read at every look at the time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SetClock:
    """The clock of what is started within ``preloaded``; monotonic time goes on as it is."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "offset"
        self.step(0)

    def step(self, seconds: float) -> None:
        """So far from the host's clock, from now on."""
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{seconds:+g}\n")
        draft.chmod(0o644)
        draft.replace(self._file)

    @contextmanager
    def preloaded(self, environment: pytest.MonkeyPatch) -> Iterator[None]:
        """What begins meanwhile has this clock."""
        with environment.context() as patch:
            for name, value in self._variables().items():
                patch.setenv(name, value)
            yield

    def _variables(self) -> dict[str, str]:
        library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
        if library is None:
            (pytest.fail if "CI" in os.environ else pytest.skip)("needs faketime")
        return {
            # The C library's memory before Redis' own, whose first call asks for the time, which asks for memory.
            "LD_PRELOAD": f"{library} libc.so.6",
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
