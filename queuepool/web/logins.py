"""What a request presents to be let in, and what becomes of guesses: they cost users and pools nothing."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
import time
from base64 import b64decode, b64encode
from collections import OrderedDict
from typing import NamedTuple

from queuepool.unix.escape import escaped
from queuepool.web.visitors import NAME, UserFile, Visitor, WebRole, WebUser

#: seconds for which a password that was right is not hashed again after it was seen, and how many are remembered
_REMEMBERED, _MOST_REMEMBERED = 86400.0, 1000
#: wrong logins of one name from one address within these seconds, after which no more are tried
_MOST_WRONG, _WITHIN, _MOST_NAMES = 5, 60.0, 10_000
#: lines of the log in as many seconds that tell of wrong logins
_MOST_LINES = 20
#: after a wrong password none is tried for so many times what it has cost: guesses take a quarter of one processor
_REST = 3.0
#: most bytes of a name and a password as a browser sends them
_LONGEST = 1024
#: who presents the token
TOKEN_HOLDER = "token"
_log = logging.getLogger("queuepool")


class Glance(NamedTuple):
    """What a header says at a glance."""

    visitor: Visitor | None
    #: whether more can be said: there is a user of this name, whose password has to be hashed
    is_open: bool = False


class Credentials:
    """Checks what a request presents. Safe for threads.

    ``stranger``: what who presents nothing may do; ``is_direct_only``: if no proxy has passed the request on.
    """

    def __init__(
        self, users: UserFile | None, token: str, stranger: WebRole | None, *, is_direct_only: bool = False
    ) -> None:
        self._users = users
        self._token = hashlib.sha256(token.encode()).digest() if token else b""
        self._stranger = stranger
        self._is_direct_only = is_direct_only
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        #: when each login that is right was seen last, and the user that it is of
        self._right: OrderedDict[bytes, tuple[float, WebUser]] = OrderedDict()
        self._wrong = _WrongLogins()
        #: for the thread that hashes
        self._rests_until = 0.0

    @property
    def asks(self) -> bool:
        """Whether a browser is to ask for a password."""
        return self._users is not None

    def stranger(self, *, is_direct: bool) -> Visitor | None:
        """Who presents nothing; ``is_direct``: whether nothing shows that a proxy has passed this on."""
        if self._stranger is None or (self._is_direct_only and not is_direct):
            return None
        return Visitor("", self._stranger)

    def look(self, header: bytes) -> Glance:
        """Who presents a token, or a password seen lately. Reads the file of users. Raises ``ConfigError``."""
        scheme, _, rest = header.partition(b" ")
        if scheme.lower() == b"bearer":
            digest = hashlib.sha256(rest.strip()).digest()
            is_right = bool(self._token) and hmac.compare_digest(digest, self._token)
            return Glance(Visitor(TOKEN_HOLDER, WebRole.VIEWER) if is_right else None)
        if self._users is None or (given := _basic(header)) is None:
            return Glance(None)
        user = self._users.read().get(given[0])
        return Glance(self._remembered(given, user), user is not None)

    def is_blocked(self, header: bytes, address: str) -> bool:
        """Whether too many wrong logins came for this name from there: then none is tried."""
        return self._wrong.are_too_many(_name_in(header), address)

    def check(self, header: bytes, address: str) -> Visitor | None:
        """The visitor of a header with a password. Blocks for some 50 ms. Raises ``ConfigError``.

        For one thread: what came meanwhile, of the same browser or of who guesses on, is looked at first.
        """
        found = self.look(header)
        if found.visitor or not found.is_open or self.is_blocked(header, address):
            return found.visitor
        assert self._users
        name, password = _basic(header) or ("", "")
        user = self._users.read().get(name)
        if user is None or not self._is_right(user, password):
            self.note_wrong(header, address)
            return None
        self._remember((name, password), user)
        return Visitor(user.name, user.role)

    def note_wrong(self, header: bytes, address: str) -> None:
        """Count a wrong login, and tell the log."""
        self._wrong.note(_name_in(header), address)

    def _is_right(self, user: WebUser, password: str) -> bool:
        """Whether it is the user's, after the rest that the last wrong one has left."""
        time.sleep(max(self._rests_until - time.monotonic(), 0.0))
        began = time.thread_time()
        is_right = user.has(password)
        if not is_right:
            self._rests_until = time.monotonic() + _REST * (time.thread_time() - began)
        return is_right

    def _remembered(self, given: tuple[str, str], user: WebUser | None) -> Visitor | None:
        mark = self._mark(given)
        with self._lock:
            at, known = self._right.get(mark, (0.0, None))
            # As the file is now: the password, the role or the user may be another.
            if known is None or known != user or time.monotonic() - at > _REMEMBERED:
                return None
            self._right[mark] = time.monotonic(), known
            self._right.move_to_end(mark)
        return Visitor(known.name, known.role)

    def _remember(self, given: tuple[str, str], user: WebUser) -> None:
        with self._lock:
            self._right[self._mark(given)] = time.monotonic(), user
            while len(self._right) > _MOST_REMEMBERED:
                self._right.popitem(last=False)

    def _mark(self, given: tuple[str, str]) -> bytes:
        """Not the password itself, and of no use to who reads the memory of this process later."""
        return hmac.digest(self._key, ":".join(given).encode(), "sha256")


class _WrongLogins:
    """The times of wrong logins, by address and name. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: OrderedDict[tuple[str, str], list[float]] = OrderedDict()
        #: when the lines of the log were written, and how many were not
        self._lines: list[float] = []
        self._untold = 0

    def are_too_many(self, name: str, address: str) -> bool:
        with self._lock:
            return len(_lately(self._times.get((address, name), []))) >= _MOST_WRONG

    def note(self, name: str, address: str) -> None:
        with self._lock:
            times = self._times.pop((address, name), [])
            self._times[address, name] = [*times[-_MOST_WRONG:], time.monotonic()]
            while len(self._times) > _MOST_NAMES:
                self._times.popitem(last=False)
            line = self._line(name, address)
        if line:
            _log.warning("dashboard: %s", line)

    def _line(self, name: str, address: str) -> str:
        """The line to log, which may be of use to what bans addresses; empty if there are too many."""
        self._lines = _lately(self._lines)
        if len(self._lines) >= _MOST_LINES:
            self._untold += 1
            return ""
        self._lines.append(time.monotonic())
        untold, self._untold = self._untold, 0
        more = f", and {untold} more before it" if untold else ""
        return f"wrong login of {escaped(name) or '-'} from {address or '-'}{more}"


def can_be_sent(name: str, password: str) -> bool:
    """Whether a browser can send this password as we read it."""
    try:
        given = b"Basic " + b64encode(f"{name}:{password}".encode())
    except UnicodeError:
        return False
    return _basic(given) == (name, password)


def _lately(times: list[float]) -> list[float]:
    now = time.monotonic()
    return [at for at in times if now - at < _WITHIN]


def _name_in(header: bytes) -> str:
    """Under which a wrong login is counted."""
    if header[:7].lower() == b"bearer ":
        return TOKEN_HOLDER
    return (_basic(header) or ("", ""))[0]


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
