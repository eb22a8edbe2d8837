"""What Prometheus reads: every metric of the table, in its text format."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from queuepool.board.counts import Histogram, JobCounts, PoolCounts, QueueFacts
from queuepool.board.meters import OUTCOMES, RUN_BOUNDS
from queuepool.board.overview import ScalingRow
from queuepool.board.scaling import HELD
from queuepool.metrics.samples import BOUNDS, HISTOGRAM, METRICS, Sample, exposition, of_pool, of_program, of_stopped
from tests.support.each import each
from tests.support.full_counts import COUNTS, FACTS, NASTY, RUNS
from tests.support.prometheus import promtool

#: labels that Prometheus gives to targets and alerts, and those that Kubernetes' discovery usually adds
PROMETHEUS_OWN = {"job", "instance", "alertname", "alertstate", "namespace", "pod", "container", "service", "node"}


def samples() -> list[Sample]:
    return [*of_program(), *of_pool(FACTS, COUNTS)]


def parsed(text: bytes) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Values by the sample's name and its labels in alphabetical order."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = defaultdict(dict)
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
    return found


def value(text: bytes, name: str, **labels: str) -> float:
    return parsed(text)[name][tuple(sorted(labels.items()))]


def test_every_metric_of_the_table_is_emitted_with_its_labels_and_nothing_else_is():
    emitted = {(sample.metric, len(sample.labels)) for sample in samples()}

    assert {(name, len(metric.labels)) for name, metric in METRICS.items()} == emitted


def test_no_sample_is_there_twice():
    twice = Counter((sample.metric, sample.labels) for sample in samples())

    assert {1} == set(twice.values())


def test_names_follow_the_rules_of_prometheus():
    for metric in METRICS.values():
        assert metric.name.startswith("queuepool_")
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert not {"pid", "host", "id", *PROMETHEUS_OWN} & set(metric.labels)


def test_the_text_says_what_the_counts_say():
    text = exposition(samples())
    job = {"pool": "mails", "queue": "high", "job_name": "send"}

    assert 2 == value(text, "queuepool_jobs_total", **job, outcome="done")
    assert 0 == value(text, "queuepool_jobs_total", **job, outcome="released")
    assert 1 == value(text, "queuepool_attempts_lost_total", **job, reason="timeout")
    assert 3 == value(text, "queuepool_queue_jobs", pool="mails", queue="high", state="ready")
    assert 1 == value(text, "queuepool_alert", pool="mails", kind="wait", subject="high")
    assert 60 << 20 == value(text, "queuepool_worker_resident_bytes", pool="mails", worker="2")
    assert 1_790_000_099.75 == value(text, "queuepool_master_beat_timestamp_seconds", pool="mails")


def test_the_outcomes_are_all_attempts():
    ended = [sample.value for sample in samples() if sample.metric == "queuepool_jobs_total"]

    assert sum(counts.ended for counts in COUNTS.jobs.values()) == sum(ended)


def test_buckets_are_cumulative_and_the_last_is_the_count():
    found = parsed(exposition(samples()))
    labels = (("job_name", "send"), ("pool", "mails"), ("queue", "high"))
    buckets = {
        dict(key)["le"]: number
        for key, number in found["queuepool_job_run_seconds_bucket"].items()
        if set(labels) <= set(key)
    }

    assert [*buckets] == [*map(str, RUN_BOUNDS), "+Inf"]
    assert [1, 1, 1, *[2] * (len(RUN_BOUNDS) - 3), 3] == list(buckets.values())
    assert 3 == found["queuepool_job_run_seconds_count"][labels]
    assert RUNS.total == found["queuepool_job_run_seconds_sum"][labels]


def test_waits_are_those_of_all_jobs_of_a_queue():
    assert 4 == value(exposition(samples()), "queuepool_job_wait_seconds_count", pool="mails", queue="high")


def test_a_queue_that_was_never_measured_has_no_sizes():
    sizes = [sample.labels for sample in samples() if sample.metric == "queuepool_queue_oldest_seconds"]

    assert [("mails", "high")] == sizes
    assert 1 == value(exposition(samples()), "queuepool_queue_paused", pool="mails", queue="low")


def test_the_state_of_store_and_master_is_that_of_the_board():
    away = exposition(of_pool(replace(FACTS, store_lost_at=1.0, beat_age=5.1), COUNTS))

    assert 0 == value(away, "queuepool_store_up", pool="mails", connection="main")
    assert 0 == value(away, "queuepool_up", pool="mails")
    assert 1 == value(exposition(samples()), "queuepool_store_up", pool="mails", connection="main")
    assert 3 == value(away, "queuepool_queue_jobs", pool="mails", queue="high", state="ready")


def test_a_pool_that_scales_shows_what_it_needs_and_why_it_does_not_get_it():
    text = exposition(samples())
    held = parsed(text)["queuepool_workers_held"]

    assert (9, 4) == tuple(value(text, f"queuepool_workers_{name}", pool="mails") for name in ("needed", "wish"))
    assert [2, 4] == [value(text, "queuepool_workers_bound", pool="mails", bound=bound) for bound in BOUNDS]
    assert {"max_workers"} == {dict(labels)["reason"] for labels, number in held.items() if number}
    assert set(HELD) == {dict(labels)["reason"] for labels in held}


@each("scaling", [None, ScalingRow(pinned=True, until="2026-11-20T10:41:07Z", held="order")])
def test_a_pool_that_does_not_scale_has_no_bounds(scaling):
    assert b"queuepool_workers_bound" not in exposition(of_pool(replace(FACTS, scaling=scaling), COUNTS))


def test_what_is_needed_is_missing_while_it_is_not_known():
    unknown = replace(FACTS, scaling=ScalingRow(fewest=2, most=4, held="silence"))
    found = parsed(exposition(of_pool(unknown, COUNTS)))

    assert not {"queuepool_workers_needed", "queuepool_workers_wish"} & set(found)
    assert [2.0, 4.0] == sorted(found["queuepool_workers_bound"].values())


def test_several_pools_share_a_text_also_on_one_queue():
    other = replace(FACTS, name="other")
    text = exposition([*of_program(), *of_pool(FACTS, COUNTS), *of_pool(other, COUNTS), *of_stopped("gone")])

    assert [0, 1, 1] == sorted(parsed(text)["queuepool_up"].values())
    assert 1 == text.count(b"# TYPE queuepool_jobs_total counter\n")
    assert b"_created" not in text


@pytest.mark.bad_input("B141")
@given(name=st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_any_name_of_a_queue_or_a_job_comes_back_as_it_was(name):
    counts = PoolCounts(jobs={(name, name): JobCounts(done=1)}, queues={name: QueueFacts(measured_at=1.0)})
    text = exposition(of_pool(FACTS, counts))
    lines = text.decode().split("\n")
    begun = [line for line in lines if line and not line.startswith(("#", "queuepool_"))]

    assert [] == begun
    assert len(OUTCOMES) == sum(line.startswith("queuepool_jobs_total{") for line in lines)


@pytest.mark.bad_input("B141")
def test_a_nasty_name_is_one_label():
    assert 1 == value(
        exposition(samples()), "queuepool_jobs_total", pool="mails", queue="high", job_name=NASTY, outcome="released"
    )


@pytest.mark.bad_input("B142")
@each("number", [2**63 - 1, -1, float("nan"), float("inf")])
def test_nonsense_on_the_board_is_shown_and_breaks_nothing(number):
    facts = replace(FACTS, generation=number, longest_run=number, resident={number: number})
    counts = PoolCounts(jobs={("q", "j"): JobCounts(done=number, run=Histogram(RUNS.counts, number))})

    assert parsed(exposition(of_pool(facts, counts)))["queuepool_jobs_total"]


def test_promtool_finds_nothing_to_say():
    done = promtool("check", "metrics", given=exposition(samples()))

    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)


def test_only_histograms_are_no_plain_numbers():
    histograms = {sample.metric for sample in samples() if isinstance(sample.value, Histogram)}

    assert {name for name, metric in METRICS.items() if metric.kind == HISTOGRAM} == histograms
