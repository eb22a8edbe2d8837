"""Who looks at the dashboard, and what they may do: users of a file, programs with a token, and strangers."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from queuepool.config.entries import contents
from queuepool.errors import ConfigError

#: the cost of a password's hash: 16 MB, and some 50 ms of the processor's time
_N, _R, _P, _LENGTH = 2**14, 8, 1, 32
#: seconds for which a password that was right is not hashed again, and how many of these are remembered
_REMEMBERED, _MOST_REMEMBERED = 300.0, 200
#: wrong passwords of one name from one address within these seconds, after which no more are tried
_MOST_WRONG, _WITHIN, _MOST_NAMES = 5, 60.0, 10_000
#: most bytes of credentials
_LONGEST = 1024
NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
#: who presents the token
TOKEN_HOLDER = "token"


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


#: what a name that does not exist is compared with, so that it takes as long as one that does
_NOBODY = WebUser("", WebRole.VIEWER, b"\0" * 16, b"\0" * _LENGTH)


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


class Credentials:
    """Checks what a request presents. Safe for threads."""

    def __init__(self, users: UserFile | None, token: str, anonymous: WebRole | None) -> None:
        self._users = users
        self._token = hashlib.sha256(token.encode()).digest() if token else b""
        self._anonymous = anonymous
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        #: when each header that was right was found so, and the user that it is of
        self._right: OrderedDict[bytes, tuple[float, WebUser]] = OrderedDict()
        #: the times of wrong passwords, by address and name
        self._wrong: OrderedDict[tuple[str, str], list[float]] = OrderedDict()

    @property
    def asks(self) -> bool:
        """Whether a browser is to ask for a password."""
        return self._users is not None

    def known(self, header: bytes | None) -> Visitor | None:
        """The visitor of a header, as far as it takes no time to tell: a stranger, a token, a password seen lately."""
        if header is None:
            return Visitor("", self._anonymous) if self._anonymous is not None else None
        scheme, _, rest = header.partition(b" ")
        if scheme.lower() == b"bearer":
            digest = hashlib.sha256(rest.strip()).digest()
            is_right = bool(self._token) and hmac.compare_digest(digest, self._token)
            return Visitor(TOKEN_HOLDER, WebRole.VIEWER) if is_right else None
        return self._remembered(header)

    def is_blocked(self, header: bytes, address: str) -> bool:
        """Whether too many wrong passwords came for this name from there: then none is tried."""
        name, _ = _basic(header) or ("", "")
        with self._lock:
            times = self._wrong.get((address, name), [])
            return sum(time.monotonic() - at < _WITHIN for at in times) >= _MOST_WRONG

    def check(self, header: bytes, address: str) -> Visitor | None:
        """The visitor of a header with a password. Blocks for some 50 ms. Raises ``ConfigError``."""
        if self._users is None or (given := _basic(header)) is None:
            return None
        name, password = given
        user = self._users.read().get(name, _NOBODY)
        if user.has(password) and user is not _NOBODY:
            self._remember(header, user)
            return Visitor(user.name, user.role)
        self._note_wrong(address, name)
        return None

    def _remembered(self, header: bytes) -> Visitor | None:
        with self._lock:
            at, user = self._right.get(self._mark(header), (0.0, _NOBODY))
        if user is _NOBODY or time.monotonic() - at > _REMEMBERED or self._users is None:
            return None
        # As the file is now: the password, the role or the user may be another.
        return Visitor(user.name, user.role) if self._users.read().get(user.name) == user else None

    def _remember(self, header: bytes, user: WebUser) -> None:
        with self._lock:
            self._right[self._mark(header)] = time.monotonic(), user
            while len(self._right) > _MOST_REMEMBERED:
                self._right.popitem(last=False)

    def _note_wrong(self, address: str, name: str) -> None:
        with self._lock:
            times = self._wrong.pop((address, name), [])
            self._wrong[address, name] = [*times[-_MOST_WRONG:], time.monotonic()]
            while len(self._wrong) > _MOST_NAMES:
                self._wrong.popitem(last=False)

    def _mark(self, header: bytes) -> bytes:
        """Not the password itself, and of no use to who reads the memory of this process later."""
        return hmac.digest(self._key, header, "sha256")


def _basic(header: bytes) -> tuple[str, str] | None:
    """The name and the password of Basic authentication; ``None`` for anything else."""
    scheme, _, rest = header.partition(b" ")
    if scheme.lower() != b"basic" or len(rest) > _LONGEST:
        return None
    try:
        name, colon, password = b64decode(rest.strip(), validate=True).decode("utf-8").partition(":")
    except ValueError:
        return None
    return (name, password) if colon and NAME.fullmatch(name) and "\0" not in password else None
