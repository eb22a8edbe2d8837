"""Keys, certificates and passwords: their form, which users can read them, and variables that hold them instead.

``${NAME}`` in a value stands for an environment variable, so that a file need not hold a secret.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from unicodedata import category
from urllib.parse import quote

from queuepool.config import urls as config_urls
from queuepool.config import values
from queuepool.config.entries import Document, Problem, Readers, contents
from queuepool.config.urls import TLS_FILES, has_password, options_of, scheme_of

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{")
_FOR_SENTINELS = re.compile(r"[?&]sentinel_(user|password)=[^&]*")
#: NAME:SECRET, a secret of at least 16 characters without blank or comma
_KEY = re.compile(r"([A-Za-z0-9_-]{1,32}):([!-+\--~]{16,512})")
_FORM = "a key is NAME:SECRET, its name of A-Z a-z 0-9 _ -, its secret of 16 to 512 characters without blank or comma"
#: bytes of a key, by Laravel's cipher. Source: Encryption/Encrypter.php (8.83 to 13.x)
KEY_BYTES: Mapping[str, int] = MappingProxyType({
    "AES-256-CBC": 32, "AES-128-CBC": 16, "AES-256-GCM": 32, "AES-128-GCM": 16,
})  # fmt: skip
_REMEDY = "its mount is read-only: mount it with mode 0400, or 0440 and a group (Kubernetes: defaultMode, Docker: mode)"


def signing_keys(raw: str) -> tuple[tuple[str, str], ...]:
    """(name, secret) pairs from ``NAME:SECRET, NAME:SECRET``, or from the path of a file with one on each line.

    Raises ``ValueError``, which never repeats a secret.
    """
    entries = _lines(Path(raw)) if raw.startswith("/") else raw.split(",") if raw else []
    found = [_KEY.fullmatch(entry.strip(" \t")) for entry in entries]
    keys = tuple((key[1], key[2]) for key in found if key)
    if len(keys) != len(found) or (raw and not keys):
        raise ValueError(_FORM)
    if len(dict(keys)) != len(keys):
        raise ValueError("two keys have the same name")
    return keys


def app_key(raw: str) -> bytes:
    """Laravel's ``APP_KEY``, or the path of a file that holds it. Raises ``ValueError``, which never repeats a key."""
    keys = previous_keys(raw)
    if len(keys) > 1:
        raise ValueError("holds more than one key: earlier ones go into previous_keys")
    return keys[0] if keys else b""


def previous_keys(raw: str) -> tuple[bytes, ...]:
    """Laravel's ``APP_PREVIOUS_KEYS``, or the path of a file with one on each line. Raises as ``app_key`` does."""
    entries = _lines(Path(raw)) if raw.startswith("/") else raw.split(",")
    keys = tuple(_decoded(entry.strip(" \t")) for entry in entries if entry.strip(" \t"))
    if raw and not all(keys or [b""]):
        raise ValueError("holds no key")
    return keys


def token(raw: str) -> str:
    """A secret that programs present, or the path of a file that holds it; may be empty. Never repeated by an error.

    The file is not read: whoever else reads the configuration may not be allowed to.
    """
    if raw and not raw.startswith("/"):
        _check_token(raw)
    return raw


def token_in(raw: str) -> str:
    """The token itself, from its file if it is a path. Raises ``ValueError``, which never repeats it."""
    if not raw.startswith("/"):
        return raw
    entries = _lines(Path(raw))
    if len(entries) != 1:
        raise ValueError(f"{raw} does not hold one line with the token")
    _check_token(entries[0])
    return entries[0]


def _check_token(found: str) -> None:
    if not re.fullmatch(r"[!-~]{16,512}", found):
        raise ValueError("a token has 16 to 512 characters without blanks: openssl rand -hex 32")


def cipher(raw: str) -> str:
    """Laravel's ``app.cipher``, in any case."""
    return values.chosen(tuple(KEY_BYTES), raw.upper())


def _decoded(key: str) -> bytes:
    """Source: EncryptionServiceProvider.php, parseKey (8.83 to 13.x)."""
    if not key.startswith("base64:"):
        return key.encode()
    try:
        return b64decode(key.removeprefix("base64:"), validate=True)
    except ValueError:
        raise ValueError("what follows base64: is not base64") from None


def _lines(path: Path) -> list[str]:
    try:
        data, readers = contents(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error
    if _are_too_many(readers, f"{path} holds keys that every user can read"):
        raise ValueError(f"{path} holds keys that every user can read: chmod 600 {path}")
    lines = (line.strip() for line in data.decode("utf-8", "replace").split("\n"))
    return [line for line in lines if line and line[0] not in ";#"]


def url(raw: str) -> str:
    """A store's URL, checked with the TLS certificates and keys that it names. Raises ``ValueError``."""
    found = config_urls.url(raw)
    names, options = TLS_FILES.get(scheme_of(found), ()), options_of(found)
    if options.keys() & set(names):
        _check_files(options, *names)
    return found


def _check_files(options: Mapping[str, str], authority: str, certificate: str, key: str) -> None:
    import ssl  # imported here: it is slow and rarely needed

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        name = authority
        if options.get(name, "system") != "system":  # PostgreSQL's word for the CAs that the host trusts
            context.load_verify_locations(options[name])
        name = certificate
        if name in options:
            # The empty password keeps OpenSSL from asking for one at the terminal.
            context.load_cert_chain(options[name], options.get(key), password="")
        name = key
        problem = f"its {name} {options.get(name)} can be read by every user"
        if name in options and _are_too_many(Readers.of(options[name]), problem):
            raise ValueError(f"{problem}: chmod o-r {options[name]}")
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror
        raise ValueError(f"its {name} {options[name]} cannot be used: {reason}") from error


def open_secrets(file: Document, path: Path | None) -> Iterator[Problem]:
    """A problem for each secret in a file that every user of this host can read.

    A group may read it: the files of services often belong to root:service.
    """
    for entry in file.entries() if file.readers.include_everyone else ():
        if secret := _secret_in(entry.key, without_variables(entry.value)):
            problem = f"holds {secret} that every user can read"
            if _are_too_many(file.readers, f"{entry.place.label}: {problem}"):
                yield Problem(entry.place, f"{problem}: chmod 600 {path}")


def _secret_in(key: str, value: str) -> str:
    if has_password(value):
        return "a password"
    if key in ("app_key", "previous_keys"):
        return "keys" if value.strip(" ,") and not value.startswith("/") else ""
    if key == "token":
        return "a token" if value.strip() and not value.startswith("/") else ""
    if key == "webhook":
        return "a webhook" if value.strip() else ""
    return "keys" if key == "signing_keys" and re.search(r":[^\s,]", value) else ""


def _are_too_many(readers: Readers, problem: str) -> bool:
    """Whether every user can read it and the mode can be changed. On a read-only mount, where it cannot, only warn."""
    if readers.include_everyone and readers.cannot_change:
        _warn(f"{problem}; {_REMEDY}")
    return readers.include_everyone and not readers.cannot_change


@cache
def _warn(words: str) -> None:
    """Warn once, however often a configuration is read."""
    import logging  # imported here: it is slow and rarely needed

    logging.getLogger("queuepool").warning(words)


def expanded(raw: str, environ: Mapping[str, str]) -> str:
    """The value with its variables replaced; ``$${`` stands for ``${`` itself.

    In the login of a URL, and in that for sentinels, a variable is one user or one password of any characters, and is
    percent-encoded here.
    Raises ``ValueError`` for a variable that is unset or empty, or holds a control character.
    """
    logins = [range(raw.find("://") + 3, raw.rfind("@"))] if "://" in raw else []
    logins += [range(*found.span()) for found in _FOR_SENTINELS.finditer(raw)]

    def value(found: re.Match[str]) -> str:
        escaped, name = found.groups()
        if escaped:
            return str(escaped)
        text = _variable(name, environ)
        return quote(text, safe="") if any(found.start() in login for login in logins) else text

    return _REFERENCE.sub(value, raw)


def without_variables(raw: str) -> str:
    """The value without its variables."""
    return _REFERENCE.sub(lambda found: found[1] or "", raw)


def holds_control_characters(text: str) -> bool:
    """Whether the text holds a control character or a lone surrogate."""
    return any(category(letter) in ("Cc", "Cs") for letter in text)


def _variable(name: str | None, environ: Mapping[str, str]) -> str:
    if not name:
        raise ValueError("has a ${ that names no environment variable: write ${NAME}, or $${ for a literal ${")
    text = environ.get(name, "")
    if not text:
        raise ValueError(f"the environment variable {name} is not set, or empty; write $${{ for a literal ${{")
    if holds_control_characters(text):
        raise ValueError(f"the environment variable {name} holds a line break or another control character")
    return text
