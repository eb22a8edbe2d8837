"""The findings of a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from queuepool.errors import StoreDenied, StoreDown, StoreError


class Grade(Enum):
    """How bad a finding is: fine, worth knowing, or jobs will be lost or not run."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one subject; ``words`` say what is wrong and what to do."""

    grade: Grade
    what: str
    words: str


def refusal(ask: Callable[[], object]) -> str:
    """The store's error on a call; empty if it succeeds. Raises ``StoreDown`` if the store is unavailable."""
    try:
        ask()
    except StoreDenied as error:
        return str(error)
    except StoreDown:
        raise
    except StoreError as error:
        return str(error)
    return ""
