"""The entries of CATALOGUE.md that a test covers, by its marks ``fault`` and ``bad_input``."""

from __future__ import annotations

import pytest


def entries_of(item: pytest.Item) -> set[str]:
    """The ids that the test is marked with, as ``F06``."""
    return {entry for mark in item.iter_markers() if mark.name in ("fault", "bad_input") for entry in mark.args}
