"""Incidents of jobs: those that hang, grow, fail, run twice or are slow."""

from __future__ import annotations

from collections.abc import Iterator

from tests.incidents.incident import Answer, Incident, answer
from tests.incidents.scene import Scene

_ORDERS = 11_000


def _hang(scene: Scene) -> Iterator[Answer]:
    [in_c] = scene.push("shop.fingerprint", [{"rounds": 2_000_000_000}], queue="default")
    [in_python] = scene.push("shop.sync_stock", [{}], queue="default")
    places = (f"job shop.fingerprint {in_c}", "in fingerprint", f"job shop.sync_stock {in_python}", "in sync_stock")
    scene.waits_for("queuepool stack web --everywhere", *places)
    yield answer(scene, "queuepool stack web --everywhere", *places)
    yield answer(scene, f"queuepool cancel {in_c} --everywhere", "job cancelled")
    scene.does(f"queuepool cancel {in_python} --everywhere")


def _leak(scene: Scene) -> Iterator[Answer]:
    scene.does("queuepool pause --on web2/web")  # whichever host it is, its log has the answer
    scene.push("shop.resize", [{"megabytes": 100}], queue="default")
    leak = ("reason=memory", "grew_most=shop.resize")
    scene.waits_for("grep grew_most pool.log", *leak)
    yield answer(scene, "grep grew_most pool.log", *leak)
    scene.does("queuepool continue --on web2/web")


def _many_fail(scene: Scene) -> Iterator[Answer]:
    orders = [_order(number) for number in range(_ORDERS)]
    bad = sum(order["country"] == "NO" and order["customer"] != 0 for order in orders)
    scene.push("shop.charge", orders, queue="default")
    scene.works_off("default")
    scene.waits_for("queuepool failed --error \"KeyError: 'NO'\" --count", str(bad))
    yield answer(scene, "queuepool failed --by error", "KeyError: 'NO'", str(bad), "has no customer")
    scene.deploys('"FR": 0.2', '"FR": 0.2, "NO": 0.25')
    back = f"{bad} jobs put back on connection redis: default {bad}"
    yield answer(scene, "queuepool retry --error \"KeyError: 'NO'\" --yes", back)
    scene.works_off("default")


def _order(number: int) -> dict[str, object]:
    """Every eleventh is from a country that the shop does not know, every hundredth has no customer."""
    customer = number % 500 if number % 100 else 0
    return {"order": number, "customer": customer, "country": "DE" if number % 11 else "NO"}


def _ran_twice(scene: Scene) -> Iterator[Answer]:
    [job] = scene.push("shop.settle", [{"order": 1}], queue="default", track=3600.0)
    scene.waits_for(f"queuepool job {job}", "state: done")
    yield answer(scene, f"queuepool job {job}", "state: done", "attempts: 2", "host: web")


def _is_slow(scene: Scene) -> Iterator[Answer]:
    scene.push("shop.render", ({"seconds": 0.1 * (number % 10)} for number in range(40)), queue="images")
    scene.waits_for("queuepool history", "shop.render")
    yield answer(scene, "queuepool history", "shop.render", "RUN_P95", only=("connection", "QUEUE", "shop."))
    yield answer(scene, "queuepool history --job shop.render --by minute --range 10m", "RUN_P95")


HANG = Incident(
    "Jobs hang",
    "Two jobs have run for far too long on one host or another: one in C code, one in a loop in Python.",
    _hang,
    "The cancelled job is among the failed ones, as `Cancelled`; `queuepool retry ID` brings it back. "
    "Give the job a `timeout`.",
)
LEAK = Incident(
    "Workers grow",
    "Workers are replaced again and again because of their memory. Which job makes them grow?",
    _leak,
    "Mend the job. Until then the worker is replaced after it, which costs an import; "
    "`memory_hard` also kills one that grows too far in mid-job.",
)
MANY_FAIL = Incident(
    "A thousand jobs fail among ten thousand good ones",
    f"Of {_ORDERS:,} orders, those from a country without a rate have failed, and some others for other reasons.",
    _many_fail,
    "Only these are put back, with all their tries. `queuepool failed --by customer` counts by an argument instead, "
    "and `queuepool forget` takes the same filters.",
)
RAN_TWICE = Incident(
    "Did this job run twice?",
    "A customer asks about one payment. The job is [tracked](jobs.md#follow-a-job).",
    _ran_twice,
    "It began twice: the first attempt failed, was released, or died with its worker, as here. "
    "The log of the host that ran it says which, under the job's id.",
)
IS_SLOW = Incident(
    "Which job is slow, and since when?",
    "All takes longer than last week.",
    _is_slow,
    "`--by day --range 7d` looks further back. `queuepool top` shows the same of this host, live.",
)
