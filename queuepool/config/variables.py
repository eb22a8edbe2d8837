"""``${NAME}`` in a value stands for an environment variable, so that a file need not hold a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from unicodedata import category
from urllib.parse import quote

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{")


def expanded(raw: str, environ: Mapping[str, str]) -> str:
    """The value with its variables replaced; ``$${`` stands for ``${`` itself.

    In the login of a URL, a variable is one user or one password of any characters, and is percent-encoded here.
    Raises ``ValueError`` for a variable that is unset or empty, or holds a control character.
    """
    login = range(raw.find("://") + 3, raw.rfind("@")) if "://" in raw else range(0)

    def value(found: re.Match[str]) -> str:
        escaped, name = found.groups()
        if escaped:
            return str(escaped)
        text = _variable(name, environ)
        return quote(text, safe="") if found.start() in login else text

    return _REFERENCE.sub(value, raw)


def without_variables(raw: str) -> str:
    """The value without its variables."""
    return _REFERENCE.sub(lambda found: found[1] or "", raw)


def holds_control_characters(text: str) -> bool:
    """Whether the text holds a control character or a lone surrogate."""
    return any(category(letter) in ("Cc", "Cs") for letter in text)


def _variable(name: str | None, environ: Mapping[str, str]) -> str:
    if not name:
        raise ValueError("has a ${ that names no environment variable: write ${NAME}, or $${ for the characters")
    text = environ.get(name, "")
    if not text:
        raise ValueError(f"the environment variable {name} is not set, or empty; write $${{ for the characters ${{")
    if holds_control_characters(text):
        raise ValueError(f"the environment variable {name} holds a line break or another control character")
    return text
