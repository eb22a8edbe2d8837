"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
