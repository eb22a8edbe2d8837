"""How much Hypothesis tries: the same few examples at every run of the same files, or very many new ones at night.

By default a third of them, the first ones; with ``--all`` each. ``HYPOTHESIS_PROFILE=nightly`` asks for very many;
what it finds is kept in ``.hypothesis`` and tried first next time.
"""

from __future__ import annotations

import os
from math import ceil

import pytest
from hypothesis import HealthCheck, settings

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
_AT_NIGHT = 100
#: examples of a test that does not say how many
WHOLE, DEFAULT = 100, 30
#: a failing example is shrunk before it is reported
patient = pytest.mark.timeout(0 if NIGHTLY else 600)


def load(whole: bool) -> None:
    """Say how much of ``effort`` is made, before a test is imported.

    No example is too slow: on a busy machine any may be.
    """
    settings.register_profile("queuepool", deadline=None, max_examples=WHOLE if whole else DEFAULT)
    settings.load_profile("queuepool")


def effort(examples: int, steps: int = 50) -> settings:
    """Settings for this many examples where all is tested, of this many steps in stateful tests."""
    part = _AT_NIGHT if NIGHTLY else settings.default.max_examples / WHOLE  # type: ignore[union-attr]
    return settings(
        max_examples=ceil(examples * part),
        stateful_step_count=steps,
        derandomize=not NIGHTLY,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
