"""In PostgreSQL an operator's command wakes the stewards, and a push does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.contract import Wake
from queuepool.stores.factory import Stores
from tests.support.drivers import opened
from tests.support.samples import new_jobs, payload

QUEUES = ["default"]
#: seconds that nothing waits for
LONG = 60.0


@pytest.fixture
def operator(postgres_url: str) -> Iterator[Stores]:
    with opened(ConnectionSettings(url=postgres_url)) as stores:
        yield stores


@pytest.fixture
def steward(operator: Stores) -> Iterator[Stores]:
    """One that has begun to wait."""
    stores = Stores(ConnectionSettings(url=operator.settings.url, block_for=0.0))
    stores.queue.wait_for_change(QUEUES, 0.01)
    yield stores
    stores.close()


def test_commands_of_operators_end_the_wait_for_a_change(steward: Stores, operator: Stores) -> None:
    operator.control.announce()
    first = steward.queue.wait_for_change(QUEUES, LONG)

    assert (Wake.NEWS, None) == (first, steward.queue.wait_for_change(QUEUES, 0.1))


def test_one_that_comes_during_another_statement_ends_the_next_wait(steward: Stores, operator: Stores) -> None:
    operator.control.announce()
    for _ in range(3):
        steward.queue.sizes("default")

    assert Wake.NEWS is steward.queue.wait_for_change(QUEUES, LONG)


def test_pushes_do_not_end_it(steward: Stores, operator: Stores) -> None:
    operator.queue.push("default", new_jobs(payload("a")))
    assert None is steward.queue.wait_for_change(QUEUES, 0.1)
    operator.control.announce()

    assert Wake.NEWS is steward.queue.wait_for_change(QUEUES, LONG)


def test_after_a_cut_connection_it_waits_on_the_next_one(steward: Stores, operator: Stores) -> None:
    steward.client.disconnect()
    steward.queue.wait_for_change(QUEUES, 0.01)
    operator.control.announce()

    assert Wake.NEWS is steward.queue.wait_for_change(QUEUES, LONG)
