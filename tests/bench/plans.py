"""How the server looks for the next job, and how long it takes: with a thousand rows, with a million."""

from __future__ import annotations

import statistics
import time
from typing import Any

from sqlalchemy import Connection, event

from tests.bench.rig import Rig
from tests.bench.tables import analyze, create, insert, kind, leave_unanalyzed
from tests.bench.words import say

FEW, MANY = 1000, 1_000_000
_EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN", "mariadb": "EXPLAIN"}


def compare(rig: Rig, tries: int) -> None:
    before = _seconds(rig, FEW, 0, tries, analyzed=True)
    say(f"reserve with {FEW:,} rows: {1000 * before:.2f} ms; with {MANY:,}:")
    for analyzed in (False, True):
        taken = _seconds(rig, MANY, 0, tries, analyzed=analyzed)
        known = "analysed" if analyzed else "never analysed"
        say(f"  {known}: {1000 * taken:.2f} ms, {taken / before:.2f} times; {_plan(rig)}")
    taken = _seconds(rig, MANY, 3600, 3, analyzed=True)
    say(f"  behind {MANY:,} delayed ones: {1000 * taken:.0f} ms; {_plan(rig)}")
    _clear(rig)


def after_a_flood(rig: Rig, tries: int) -> None:
    """The worker's statement was prepared while the table was empty, and the planner has not heard of the rows yet."""
    _clear(rig)
    queue, tag = rig.stores.queue, rig.stores.queue.join()
    for _ in range(20):
        queue.reserve(["default"], tag, 1)
    insert(rig, MANY)
    say(f"  come at once to a worker that waited: {1000 * _median(rig, tries):.2f} ms")
    _clear(rig)


def _seconds(rig: Rig, rows: int, delay: int, tries: int, *, analyzed: bool) -> float:
    """Of the median reserve of a ready job, behind so many others where these are delayed."""
    _clear(rig)
    insert(rig, rows, delay)
    if delay:
        insert(rig, 2 * tries)
    if analyzed:
        analyze(rig)
    return _median(rig, tries)


def _median(rig: Rig, tries: int) -> float:
    queue, tag, taken = rig.stores.queue, rig.stores.queue.join(), []
    for _ in range(tries):
        began = time.perf_counter()
        leases = queue.reserve(["default"], tag, 1).leases
        taken.append(time.perf_counter() - began)
        assert leases
        queue.delete(leases)
    return statistics.median(taken)


def _plan(rig: Rig) -> str:
    """Of the statement that is really sent, in few words."""
    sent: list[tuple[str, Any]] = []
    engine = rig.stores.client.engine
    listener = lambda _connection, _cursor, statement, parameters, *_: sent.append((statement, parameters))  # noqa: E731
    event.listen(engine, "before_cursor_execute", listener)
    rig.stores.queue.delete(rig.stores.queue.reserve(["default"], rig.stores.queue.join(), 1).leases)
    event.remove(engine, "before_cursor_execute", listener)
    statement, parameters = next(one for one in sent if "SKIP LOCKED" in one[0] or "chosen" in one[0])

    def explain(connection: Connection) -> list[Any]:
        return list(connection.exec_driver_sql(f"{_EXPLAIN[kind(rig)]} {statement}", parameters))

    return _in_few_words(rig, rig.stores.client.transaction(explain))


def _in_few_words(rig: Rig, rows: list[Any]) -> str:
    if kind(rig) == "mariadb":
        return "; ".join(f"{row.type} by {row.key}, {row.Extra}" for row in rows)
    lines = [str(row[-1]).strip() for row in rows]
    steps = [line.partition("  (cost")[0].removeprefix("->  ") for line in lines]
    return "; ".join(
        step
        for step in steps
        if step.startswith(("SEARCH", "SCAN jobs", "USE TEMP")) or " on jobs" in step or step == "Sort"
    )


def _clear(rig: Rig) -> None:
    create(rig)
    leave_unanalyzed(rig)
