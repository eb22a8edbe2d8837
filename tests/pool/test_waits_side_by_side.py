"""A worker of many jobs waits for the next ones in a thread of its own, and never stops asking for them."""

from __future__ import annotations

from queuepool.worker.lane_loop import Bell, Waiter
from tests.support.eventually import eventually
from tests.support.pools import Site

BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.besideapp")


def test_a_wait_is_made_also_while_a_token_is_passed_on(stores):
    waiter = Waiter(stores.queue, Bell())
    for _ in range(5):
        waiter.pass_on(("default",))
        waiter.wait(("default",), 0.05)
        eventually(lambda: waiter.is_over)
        assert ("default",) == waiter.ended()


def begins(site: Site, tag: str) -> None:
    site.push("ok", name="beside", queue="a", tag=tag)
    eventually(lambda: site.trail(event="end", tag=tag))


def test_a_queue_that_is_paused_and_continued_stops_no_other_one(site):
    control = site.queue.stores.control
    with site.pool(*BESIDE, "--queue", "a,b", config="[connection]\nblock_for = 60\n") as pool:
        begins(site, "first")
        for number in range(1, 3):
            for change, words in ((control.pause, "queues paused"), (control.resume, "queues continued")):
                change("b")
                eventually(lambda words=words, number=number: number == pool.log().count(words))
                for turn in range(2):  # the first one ends a wait for other queues
                    begins(site, f"{words} {number} {turn}")
