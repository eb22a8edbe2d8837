"""A server's clock that a test sets: libfaketime, with an offset in a file that it reads at every clock call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SetClock:
    """The clock of processes started within ``preloaded``; monotonic time is unchanged."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "offset"
        self.step(0)

    def step(self, seconds: float) -> None:
        """From now on the clock is ``seconds`` ahead of the host's."""
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{seconds:+g}\n")
        draft.chmod(0o644)
        draft.replace(self._file)

    @contextmanager
    def preloaded(self, environment: pytest.MonkeyPatch) -> Iterator[None]:
        """Processes started meanwhile have this clock."""
        with environment.context() as patch:
            for name, value in self._variables().items():
                patch.setenv(name, value)
            yield

    def _variables(self) -> dict[str, str]:
        library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
        if library is None:
            (pytest.fail if "CI" in os.environ else pytest.skip)("needs faketime")
        return {
            # The C library's malloc before Redis' own: that one's first call reads the time, which allocates memory.
            "LD_PRELOAD": f"{library} libc.so.6",
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
