"""What the figures alone do not say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class Load(NamedTuple):
    """What a queue was given at half load, in jobs a second; ``limited``: its producer could not push more."""

    rate: float
    limited: bool


@dataclass
class Asides:
    """By queue; written while it is measured, read by the report."""

    #: jobs that ran more than once
    doubles: Counter[str] = field(default_factory=Counter)
    loads: dict[str, Load] = field(default_factory=dict)
    #: how many jobs stood for all of a case that would have taken too long
    fewer: dict[str, int] = field(default_factory=dict)
