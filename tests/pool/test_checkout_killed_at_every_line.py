"""The checkout of docs/steps.md, killed at every line: it is charged once, and each row is shipped."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest

from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site

APP = ("--modules", "tests.support.checkoutapp", "--workers", "4", "--max-crashes", "0")
#: orders that wait at a time; each is killed at another line
BATCH = 40
#: seconds for a batch where others crowd the machine, and for all of them
PATIENCE, IN_ALL = 240, 1200
#: jobs before each order, so that no worker dies young: the starts of those that do are spaced out
QUICK = 3


@pytest.mark.timeout(IN_ALL)
@pytest.mark.parametrize(
    ("driver", "more"),
    [
        ("redis", False),
        pytest.param("redis", True, marks=pytest.mark.thorough("it kills within the steps, too")),
        pytest.param("sqlite", True, marks=pytest.mark.thorough("it kills within the steps, too")),
    ],
)
def test_it_is_charged_once(request, driver, more):
    with site_on(driver, request) as site:
        orders = killed_at_each_line(site, more=more)
        kills = sum((site.path / f"killed-{order}").exists() for order in orders)
        asked, shipped, mailed = (of_each(site, event) for event in ("asked to pay", "shipped", "mailed"))

        assert kills > (100 if more else 15)
        assert {*orders} == {*asked} == {*mailed}
        # Those that were killed between the payment and its record ask again, with the same number: these lines, which
        # have numbers in a row, and no others.
        again = [order for order in orders if asked[order] > 1]
        assert again == [*range(again[0], again[0] + len(again))] if again else True
        assert len(again) <= (60 if more else 2), again
        assert {2} >= {asked[order] for order in again}
        assert 3 * len(orders) <= sum(shipped.values()) <= 3 * len(orders) + kills
        rows = {(line["order"], line["row"]) for line in site.trail(event="shipped")}
        assert {(order, row) for order in orders for row in (1, 2, 3)} == rows
        assert {4200} == {line["cents"] for line in site.trail(event="mailed")}
        assert all(asked[order] + shipped[order] + mailed[order] <= 6 for order in orders)  # one effect again, at most
        assert 0 == site.queue.stores.failed.count()
        assert not any(site.queue.stores.steps.of_job(line["id"]) for line in site.trail(event="end") if "id" in line)


def killed_at_each_line(site: Site, *, more: bool) -> range:
    """Check out order after order, until one has fewer lines than its number; returns their numbers."""
    with site.pool(*APP):
        for first in count(1, BATCH):
            batch = range(first, first + BATCH)
            for order in batch:
                for _ in range(QUICK):
                    site.queue.push("quick", {})
                site.queue.push("checkout", {"order": order, "more": more})
            eventually(lambda batch=batch: {*batch} <= {line["order"] for line in site.trail(event="end")}, PATIENCE)
            if not (site.path / f"killed-{batch[-1]}").exists():
                return range(1, batch[-1] + 1)
    raise AssertionError


def of_each(site: Site, event: str) -> Counter[int]:
    return Counter(line["order"] for line in site.trail(event=event))
