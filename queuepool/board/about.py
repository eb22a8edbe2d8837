"""What a running pool records about itself in its directory, so that a command for another pool leaves it alone."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from queuepool.config.connections import identity_of
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.config.urls import masked

FILE = "about.json"
_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class About:
    """Holds no secret. ``configuration`` is the file's path, empty without one; ``identity`` is the store's."""

    store: str
    prefix: str
    identity: str
    queues: list[str]
    configuration: str
    working_directory: str
    user: str
    #: of the queues; missing in the file without them
    weights: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, settings: PoolSettings) -> About:
        """About a pool that this process starts."""
        connection = settings.connection
        return cls(
            store=masked(connection.url),
            prefix=connection.prefix,
            identity=identity_of(connection),
            queues=[*settings.queues],
            configuration=absolute(settings.config),
            working_directory=absolute(Path()),
            user=user_name(),
            weights=[*settings.weights],
        )

    @classmethod
    def read(cls, folder: Path) -> About | None:
        """About the pool in this directory; ``None`` if it cannot be read."""
        try:
            fd = os.open(folder / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, "rb") as file:
                found = cls(**json.loads(file.read(_MAX_BYTES)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        return found if found.is_sound else None

    @property
    def is_sound(self) -> bool:
        """Whether all values are as a pool writes them: a job may have written over the file."""
        texts = (self.store, self.prefix, self.identity, self.configuration, self.working_directory, self.user)
        if not isinstance(self.queues, list) or not isinstance(self.weights, list):
            return False
        is_of_texts = all(isinstance(text, str) for text in (*texts, *self.queues))
        return is_of_texts and all(isinstance(weight, int) for weight in self.weights)

    def write(self, folder: Path) -> None:
        """Write it completely or not at all. Raises ``OSError``."""
        draft = folder / "draft.about"  # a later claim of the directory removes one that a kill left
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "w") as file:
            json.dump(self._facts(), file)
        draft.replace(folder / FILE)

    def is_meant_by(self, settings: PoolSettings) -> bool:
        """Whether a command with these settings means this pool: they name the same file, or the same store."""
        is_of_file = bool(self.configuration) and self.configuration == absolute(settings.config)
        return is_of_file or self.identity == identity_of(settings.connection)

    def facts(self) -> dict[str, Any]:
        """The facts that ``status`` shows."""
        return {key: value for key, value in self._facts().items() if key != "identity"}

    def _facts(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key != "weights" or value}

    @property
    def description(self) -> str:
        """Which pool it is, in words."""
        return f"that of {self.configuration or f'{self.working_directory} on {self.store}'} (user {self.user})"

    def in_place_of(self, settings: PoolSettings, folder: Path) -> str:
        """One line for a command whose settings mean another pool: which pool runs here, and which flags name it."""
        which = f"one {self._origin}, started in {self.working_directory} by {self.user}"
        return f"the one {About.of(settings)._origin} is not running; {which}, is: say {self._hint(folder)}"

    @property
    def gone(self) -> str:
        """Which of the places that it was started with have been removed since."""
        places = (self.working_directory, self.configuration)
        return ", ".join(place for place in places if place and not Path(place).exists())

    @property
    def _origin(self) -> str:
        prefix = f" with prefix {self.prefix}" if self.prefix else ""
        return f"of {self.configuration}" if self.configuration else f"on {self.store}{prefix}"

    def _hint(self, folder: Path) -> str:
        """The flags that make a command mean this pool."""
        if self.configuration:
            return f"-c {shlex.quote(self.configuration)}"
        by_place = f"--runtime-dir {shlex.quote(str(folder.parent))}"
        return f"{self._flags} (or {by_place})" if self._is_known_by_flags else by_place

    @property
    def _flags(self) -> str:
        return shlex.join(["--url", self.store, *(["--prefix", self.prefix] if self.prefix else [])])

    @property
    def _is_known_by_flags(self) -> bool:
        """Whether flags can name its store: flags hold no login and no names of tables."""
        with suppress(ValueError):  # a job may have written over the file
            return self.identity == identity_of(ConnectionSettings(url=self.store, prefix=self.prefix))
        return False


def absolute(path: Path | None) -> str:
    """The absolute path; unchanged where the working directory has been removed; empty for ``None``."""
    with suppress(OSError):
        return str(path.absolute()) if path else ""
    return str(path or "")


def user_name() -> str:
    """The user of this process; its number if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's user may have no name
        return str(os.geteuid())


def operator() -> str:
    """The operator of this process: ``user@host``."""
    return f"{user_name()}@{socket.gethostname()}"
