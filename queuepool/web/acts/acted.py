"""What an action answers with, in words that are true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Acted:
    """The outcome in words, and the page to show after it."""

    words: str
    #: the path of that page, with its query
    back: str
    #: whether it was done
    is_good: bool = True
    #: more for programs
    facts: Mapping[str, Any] = field(default_factory=dict)
    #: whether surely nothing was done, so that the same form may be sent again
    is_untouched: bool = False


def noted(words: str, why: str) -> str:
    """These words about what was done; ``why``: why the journal has no line of it, empty if it has."""
    return f"{words}; the journal has no line of this: {why}" if why else words
