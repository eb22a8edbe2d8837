"""What a check finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from queuepool.errors import StoreDenied, StoreDown, StoreError


class Grade(Enum):
    """How bad it is: nothing, worth knowing, or jobs will be lost or not run."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; ``words`` say what is the matter and what to do."""

    grade: Grade
    what: str
    words: str


def refusal(ask: Callable[[], object]) -> str:
    """What the store says to it; empty when it is permitted. Raises ``StoreDown`` when it is away."""
    try:
        ask()
    except StoreDenied as error:
        return str(error)
    except StoreDown:
        raise
    except StoreError as error:
        return str(error)
    return ""
