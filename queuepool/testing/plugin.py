"""The pytest plugin: a fixture for each tool, with the prefix ``queuepool_``. Loads nothing before one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from queuepool.jobs.current_job import Current
    from queuepool.testing.attempts import Ran, RanNow
    from queuepool.testing.pushes import Pushes


@pytest.fixture
def queuepool_fake() -> Iterator[Pushes]:
    """What the test dispatches is recorded and not run: ``queuepool.testing.fake``."""
    from queuepool.testing import fake

    with fake() as pushed:
        yield pushed


@pytest.fixture
def queuepool_run_now() -> Iterator[RanNow]:
    """What the test dispatches runs at once: ``queuepool.testing.run_now``."""
    from queuepool.testing import run_now

    with run_now() as ran:
        yield ran


@pytest.fixture
def queuepool_drain(queuepool_fake: Pushes) -> Callable[..., Ran]:
    """What the test dispatches waits, in a temporary queue, for a call of this: ``queuepool.testing.drain``."""
    from queuepool.testing import drain

    return drain


@pytest.fixture
def queuepool_as_current() -> Iterator[Current]:
    """``current()`` returns this job in the whole test: ``queuepool.testing.as_current``."""
    from queuepool.testing import as_current

    with as_current() as job:
        yield job
