"""The dashboard and the alerts in conf/ ask for metrics that there are, in PromQL that Prometheus reads."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from queuepool.metrics.samples import HISTOGRAM, METRICS, Metric
from tests.support.each import each
from tests.support.prometheus import promtool

ROOT = Path(__file__).parents[2]
DASHBOARD, RULES = ROOT / "conf/grafana-queuepool.json", ROOT / "conf/prometheus-rules.yml"
#: what Grafana puts in, as Prometheus could
VARIABLES = {"$__rate_interval": "5m", "$pool": ".*", "$queue": ".*"}


#: metrics of others, with the labels by which our files ask for them
OTHERS = {"up": {"job", "instance"}, "node_textfile_mtime_seconds": {"file", "instance"}}


def names_of(metric: Metric) -> set[str]:
    """The names of its samples."""
    if metric.kind == HISTOGRAM:
        return {f"{metric.name}{suffix}" for suffix in ("_bucket", "_count", "_sum")}
    return {metric.name}


EMITTED = {name: metric for metric in METRICS.values() for name in names_of(metric)}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def expressions() -> Iterator[str]:
    """Those of the dashboard."""
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (note["expr"] for note in dashboard()["annotations"]["list"])


def rules() -> list[str]:
    return re.findall(r"(?m)^ *expr: (.*)$", RULES.read_text())


def asked(expression: str) -> set[str]:
    return set(re.findall(r"\bqueuepool_\w+", expression))


def asked_of_others(expression: str) -> set[str]:
    return {name for name in OTHERS if re.search(rf"\b{name}\b", expression)}


@each("expression", [*expressions(), *rules()])
def test_every_metric_that_is_asked_for_is_emitted_with_these_labels(expression):
    known = {"instance", "le", *(label for name in asked(expression) for label in EMITTED[name].labels)}
    known |= {label for name in asked_of_others(expression) for label in OTHERS[name]}
    labels = re.findall(r"(\w+)=~?\"", expression)
    labels += [label for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression) for label in group.split(", ")]

    assert asked(expression) | asked_of_others(expression)
    assert set() == set(labels) - known


def test_the_dashboard_shows_every_metric():
    shown = {EMITTED[name].name for expression in expressions() for name in asked(expression)}

    assert set(METRICS) == shown


def test_the_variables_of_the_dashboard_are_labels():
    queries = [one["query"]["query"] for one in dashboard()["templating"]["list"] if one["type"] == "query"]
    pairs = [re.fullmatch(r"label_values\((\w+), (\w+)\)", query) for query in queries]

    assert [] == [found[0] for found in pairs if found and found[2] not in EMITTED[found[1]].labels]
    assert all(pairs)


def test_panels_do_not_lie_above_each_other():
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]

    assert len(cells) == len(set(cells))
    assert len(places) == len({panel["id"] for panel in dashboard()["panels"]})


def test_promtool_reads_every_expression(tmp_path):
    lines = [json.dumps(filled(expression)) for expression in expressions()]
    rules = [f"- record: a:b{number}\n  expr: {line}\n" for number, line in enumerate(lines)]
    (tmp_path / "rules.yml").write_text("groups:\n- name: a\n  rules:\n  " + "  ".join("".join(rules).splitlines(True)))
    done = promtool("check", "rules", str(tmp_path / "rules.yml"))

    assert 0 == done.returncode, done.stdout + done.stderr
    assert f"{len(lines)} rules found".encode() in done.stdout


def filled(expression: str) -> str:
    """As Grafana would ask."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_each_alert_is_raised_by_its_cause_alone(tmp_path):
    shutil.copy(RULES, tmp_path)
    shutil.copy(Path(__file__).with_name("rules_test.yml"), tmp_path)
    checked = promtool("check", "rules", str(tmp_path / RULES.name))
    tested = promtool("test", "rules", str(tmp_path / "rules_test.yml"))

    assert 0 == checked.returncode, checked.stdout + checked.stderr
    assert 0 == tested.returncode, tested.stdout + tested.stderr


def test_each_alert_has_a_test():
    alerts = re.findall(r"(?m)^ *- alert: (\w+)$", RULES.read_text())
    tested = re.findall(r"alertname: (\w+)", Path(__file__).with_name("rules_test.yml").read_text())

    assert sorted([*alerts, *alerts]) == sorted(tested)
