"""How much Hypothesis tries: the same few examples at every run of the same files, or very many new ones at night.

``HYPOTHESIS_PROFILE=nightly`` asks for the latter; what it finds is kept in ``.hypothesis`` and tried first next time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
_AT_NIGHT = 100
#: a failing example is shrunk before it is reported
patient = pytest.mark.timeout(0 if NIGHTLY else 600)


def effort(examples: int, steps: int = 50) -> settings:
    """Settings for this many examples, of this many steps in stateful tests."""
    return settings(
        max_examples=examples * (_AT_NIGHT if NIGHTLY else 1),
        stateful_step_count=steps,
        derandomize=not NIGHTLY,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
