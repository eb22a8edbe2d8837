"""The scale report's statements about growth follow from what was measured."""

from __future__ import annotations

import pytest

from tests.bench.rig import redis_rig
from tests.bench.scale import curves, report
from tests.bench.scale.fill import Filler
from tests.bench.scale.growth import costs, growth
from tests.bench.scale.rows import Rows
from tests.bench.scale.sizes import Scale
from tests.bench.tables import sql_rig

FLAT = {1_000: {"push, µs": 50.0, "drained, jobs/s": 100.0}, 1_000_000: {"push, µs": 55.0, "drained, jobs/s": 80.0}}
STEEP = {1_000: {"push, µs": 50.0}, 1_000_000: {"push, µs": 250.0}}


def scale(title: str, *, by_log: bool = True) -> Scale:
    return Scale(title, "jobs", "Some jobs.", [1_000, 1_000_000], lambda _rig, _size: {}, by_log)


def test_a_rate_that_falls_is_a_cost_that_grows():
    assert {1_000: 1.0, 1_000_000: 1.25} == costs(FLAT, "drained, jobs/s")


def test_a_thousand_times_as_many_jobs_may_cost_twice_as_much():
    one, other = growth("waiting jobs", FLAT)

    assert pytest.approx(2.0) == one.log
    assert [False, False, True] == [step.is_too_fast for step in (one, other, *growth("delayed jobs", STEEP))]


def test_the_statement_is_made_by_the_figures():
    flat = report.statement({"a": FLAT}, [scale("a")])
    steep = report.statement({"a": FLAT, "b": STEEP}, [scale("a"), scale("b")])
    other = report.statement({"a": FLAT, "b": STEEP}, [scale("a"), scale("b", by_log=False)])

    assert flat.startswith("No step grows faster than the logarithm of the queue: from 1,000 to 1,000,000")
    assert steep.startswith("**Some steps grow faster")
    assert steep.endswith("By more than 25% faster: b: push, µs 5.00 times.")
    assert flat == other


def test_the_report_has_a_table_and_curves_for_what_was_measured_alone():
    text = report.written({"a": FLAT}, [scale("a"), scale("b")], ["a machine"], "scale.svg")
    picture = curves.drawn(report.panels({"a": FLAT}, [scale("a"), scale("b")]))

    assert "| 1,000,000 | 55.0 | 80.0 |" in text
    assert "## B" not in text
    assert 3 == picture.count("<polyline")  # two steps, and the logarithm


def test_jobs_that_the_server_made_are_where_they_are_wanted_and_no_two_are_the_same():
    with redis_rig() as rig:
        filler = Filler(rig)
        filler.waiting("aside", 120)
        filler.delayed("aside", 30)
        filler.reserved("aside", 20)
        filler.move("aside", "default")
        sizes = rig.queue.sizes()
        made = rig.stores.queue.reserve(["default"], 1, 120).leases

        assert (120, 30, 20) == (sizes.ready, sizes.delayed, sizes.reserved)
        assert 120 == len({lease.receipt for lease in made})
        assert 0 == filler.left("aside")


def test_rows_that_the_database_made_are_where_they_are_wanted():
    with sql_rig("sqlite") as rig:
        rows = Rows(rig)
        rows.waiting("aside", 120)
        rows.delayed("aside", 30)
        rows.reserved("behind", 20)
        rows.move("aside", "default")
        rows.move("behind", "default")

        sizes = rig.queue.sizes()
        assert (120, 30, 20) == (sizes.ready, sizes.delayed, sizes.reserved)
        assert (0, 120) == (rows.left("aside"), rows.left("default"))

        rows.take_back("default", "aside")
        assert (120, 0) == (rows.left("aside"), rows.left("default"))
        assert 50 == rig.queue.size()
