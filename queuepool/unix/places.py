"""What a process was started in and with, which may be removed while it runs, as when old releases are pruned."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def working_directory() -> Path | None:
    """``None`` where it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def lasting(path: Path) -> Path:
    """The absolute path, since the working directory may be removed or left. Raises ``OSError``."""
    plain, given = Path(os.path.abspath(path)), path.absolute()
    return plain if plain.parent.resolve() == given.parent.resolve() else given  # a link before a .. leads elsewhere


class Places:
    """The places that exist now, to name those that are gone later: an import or a start may need them."""

    def __init__(self, configuration: Path | None = None) -> None:
        named = {"the working directory": working_directory(), "the configuration": configuration}
        named |= {"Python's environment": Path(sys.prefix)}
        named |= {name: Path(os.environ[name]) for name in ("HOME", "TMPDIR") if os.environ.get(name)}
        named |= {f"on Python's path {number}": Path(place) for number, place in enumerate(sys.path) if place}
        self._places: dict[Path, str] = {}
        for words, path in named.items():
            if path and path.exists():
                self._places.setdefault(Path(os.path.abspath(path)), words.rstrip(" 0123456789"))

    def gone(self) -> str:
        """What has been removed since, in words; empty if nothing."""
        return ", ".join(f"{path} ({words})" for path, words in self._places.items() if not path.exists())
