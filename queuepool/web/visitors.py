"""Who looks at the dashboard, and what they may do; the users of a file."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from queuepool.config.entries import contents
from queuepool.errors import ConfigError

#: the cost of a password's hash: 16 MB, and some 50 ms of the processor's time
_N, _R, _P, _LENGTH = 2**14, 8, 1, 32
NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")


class WebRole(IntEnum):
    """What a visitor may do; each may also do what those before it may."""

    #: see
    VIEWER = 1
    #: pause, continue, retry, cancel
    OPERATOR = 2
    #: forget, drop, clear, stop
    ADMIN = 3


ROLES: Mapping[str, WebRole] = {role.name.lower(): role for role in WebRole}


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks. ``name`` is empty for a stranger."""

    name: str
    role: WebRole

    @classmethod
    def of(cls, found: Visitor | tuple[str, str] | str | None) -> Visitor | None:
        """From what an application's ``access`` returns: a role, or a name and a role. Raises ``ValueError``."""
        if found is None or isinstance(found, Visitor):
            return found
        name, role = ("", found) if isinstance(found, str) else found
        if role not in ROLES:
            raise ValueError(f"access returned {role!r}, which is none of {', '.join(ROLES)}")
        return cls(name, ROLES[role])

    def may(self, role: WebRole) -> bool:
        """Whether this is one of what they may do."""
        return self.role >= role


def hashed(password: str) -> str:
    """A new hash of it, for the file of users. Blocks for some 50 ms."""
    salt = secrets.token_bytes(16)
    return f"scrypt${_N}${_R}${_P}${b64encode(salt).decode()}${b64encode(_scrypt(password, salt)).decode()}"


def _scrypt(password: str, salt: bytes, n: int = _N, r: int = _R, p: int = _P) -> bytes:
    raw = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(raw, salt=salt, n=n, r=r, p=p, maxmem=64 * 1024 * 1024, dklen=_LENGTH)


@dataclass(frozen=True, slots=True)
class WebUser:
    """A line of the file: ``NAME:ROLE:HASH``."""

    name: str
    role: WebRole
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, line: str) -> WebUser:
        """Raises ``ValueError``, which never repeats the hash."""
        name, _, rest = line.partition(":")
        role, _, hash_ = rest.partition(":")
        if not NAME.fullmatch(name) or role not in ROLES:
            raise ValueError(f"is not NAME:ROLE:HASH, with a role of {', '.join(ROLES)}")
        parts = hash_.split("$")
        if len(parts) != 6 or parts[:4] != ["scrypt", str(_N), str(_R), str(_P)]:
            raise ValueError(f"the hash of {name} is not one of ours: queuepool web --add-user {name}")
        return cls(name, ROLES[role], b64decode(parts[4], validate=True), b64decode(parts[5], validate=True))

    def has(self, password: str) -> bool:
        """Whether this is the password. Blocks for some 50 ms."""
        return hmac.compare_digest(_scrypt(password, self.salt), self.digest)


class UserFile:
    """The users of a file, which is read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._users: Mapping[str, WebUser] = {}
        self._lock = threading.Lock()

    def read(self) -> Mapping[str, WebUser]:
        """By name. Raises ``ConfigError``, also for a file that every user of this host can read."""
        with self._lock:
            try:
                found = os.stat(self._path)
                seen = found.st_ino, found.st_size, found.st_mtime_ns
                if seen != self._seen:
                    self._users, self._seen = self._parsed(), seen
            except OSError as error:
                raise ConfigError("[web] users", f"{self._path} cannot be read: {error.strerror}") from error
            return self._users

    def _parsed(self) -> Mapping[str, WebUser]:
        try:
            data, readers = contents(self._path)
        except ValueError as error:
            raise ConfigError("[web] users", f"{self._path} {error}") from error
        if readers.include_everyone and not readers.cannot_change:
            raise ConfigError("[web] users", f"{self._path} can be read by every user: chmod 600 {self._path}")
        found: dict[str, WebUser] = {}
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if line.strip() and line[0] not in "#;":
                try:
                    user = WebUser.of(line.strip())
                except ValueError as error:
                    raise ConfigError("[web] users", f"{self._path}:{number}: {error}") from error
                found[user.name] = user
        return found
