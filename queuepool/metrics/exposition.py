"""Samples in Prometheus' text format 0.0.4; needs ``prometheus_client`` (extra ``metrics``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING

from queuepool.board.counts import RUN_BOUNDS, WAIT_BOUNDS, Histogram
from queuepool.metrics.samples import Sample
from queuepool.metrics.table import COUNTER, HISTOGRAM, INFO, METRICS, Metric

if TYPE_CHECKING:
    from prometheus_client.metrics_core import HistogramMetricFamily
    from prometheus_client.metrics_core import Metric as Family

TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: what to say where the library is missing
NEEDED = "needs pip install 'queuepool-worker[metrics]'"
#: the upper bounds of each histogram's buckets, as Prometheus writes them
_BOUNDS: Mapping[str, tuple[str, ...]] = {
    "queuepool_job_run_seconds": (*map(str, RUN_BOUNDS), "+Inf"),
    "queuepool_job_wait_seconds": (*map(str, WAIT_BOUNDS), "+Inf"),
}


def is_possible() -> bool:
    """Whether the library is installed."""
    return find_spec("prometheus_client") is not None


def exposition(samples: Iterable[Sample]) -> bytes:
    """The text of these samples, by metric in the table's order. Raises ``ImportError`` without the library."""
    from prometheus_client.exposition import generate_latest  # imported here: slow, and an extra

    return generate_latest(_Collected(samples))


class _Collected:
    """The samples as the library takes them: a collector, outside of its global registry."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._by_metric: dict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            self._by_metric[sample.metric].append(sample)

    def collect(self) -> Iterator[Family]:
        for name, metric in METRICS.items():
            if found := self._by_metric.get(name):
                yield _family(metric, found)


def _family(metric: Metric, samples: Iterable[Sample]) -> Family:
    from prometheus_client import metrics_core as core

    if metric.kind == HISTOGRAM:
        return _histogram(core.HistogramMetricFamily(metric.name, metric.help, labels=metric.labels), samples)
    if metric.kind == INFO:
        info = core.InfoMetricFamily(metric.name.removesuffix("_info"), metric.help, labels=())
        for sample in samples:
            info.add_metric((), dict(zip(metric.labels, sample.labels, strict=True)))
        return info
    kind = core.CounterMetricFamily if metric.kind == COUNTER else core.GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for sample in samples:
        assert not isinstance(sample.value, Histogram)
        family.add_metric(sample.labels, sample.value)
    return family


def _histogram(family: HistogramMetricFamily, samples: Iterable[Sample]) -> Family:
    """With cumulative buckets, as Prometheus has them."""
    bounds = _BOUNDS[family.name]
    for sample in samples:
        assert isinstance(sample.value, Histogram)
        buckets = list(zip(bounds, accumulate(sample.value.counts), strict=True))
        family.add_metric(sample.labels, buckets, sample.value.total)
    return family
