"""The pages of flows: a list, one as a graph with a table beside it, and what is done there."""

from __future__ import annotations

import re

import pytest

from queuepool import Flow
from queuepool.jobs.following_flows import FlowId
from queuepool.operating.flow_graph import MOST_BOXES, graph_of
from queuepool.stores.flows import MemberRecord
from queuepool.web.graphs import drawn
from queuepool.web.pages.flows import may_be_drawn
from tests.support.dashboards import config_of, opened
from tests.support.flowapp import fails, split, step
from tests.support.graphs import Drawn, ended, taken
from tests.support.pools import Site
from tests.web.test_acts import journal, told

pytestmark = pytest.mark.every_store("at")


@pytest.fixture
def failed(at: Site) -> FlowId:
    """A flow whose second job has failed."""
    flow = Flow("album <b>7</b>")
    first = flow.add(step.call("a"))
    second = flow.add(fails.call(), after=first)
    flow.add(step.call("b"), after=second)
    flow.add(step.call("c"), after=second, on="any")
    found = flow.push_to(at.queue)
    for how in ("d", "f", "d"):
        end_next(at, how)
    return found


def end_next(at: Site, how="d", **more) -> None:
    [lease] = taken(at.queue.stores.queue).values()
    assert ended(at.queue.stores.queue, lease, how, **more)


def test_flows_are_listed_with_their_progress_the_latest_first(at, browser, failed):
    flow = Flow("import")
    flow.add(step.call("a"))
    running = flow.push_to(at.queue)

    rows = browser.facts("/flows")["flows"]
    assert [(running, "running", "0 of 1 done"), (failed, "failed", "2 of 4 done, 1 failed, 1 cancelled")] == [
        (row["id"], row["state"], row["progress"]) for row in rows
    ]
    for query in ("?state=failed", "?flow=album*"):
        assert [failed] == [row["id"] for row in browser.facts(f"/flows{query}")["flows"]]
    first = browser.facts("/flows?limit=1")
    assert [failed] == [row["id"] for row in browser.facts(f"/flows?after={first['next']}")["flows"]]
    page = browser.get("/flows").text
    assert f'href="/flows/default/{failed}"' in page
    assert "<b>7" not in page
    assert 400 == browser.get("/flows?state=asleep").status


def test_a_flow_is_drawn_and_the_table_has_the_same(at, browser, failed):
    facts = browser.facts(f"/flows/default/{failed}")
    page = browser.get(f"/flows/default/{failed}").text

    assert ["done", "failed", "cancelled", "done"] == [one["state"] for one in facts["members"]]
    assert ["1"] == facts["members"][0]["then"]
    assert ["2", "3 in any case"] == facts["members"][1]["then"]
    boxes = facts["graph"]["boxes"]
    assert [("0", "done"), ("1", "failed"), ("2", "cancelled"), ("3", "done")] == [
        (box["number"], box["state"]) for box in boxes
    ]
    assert boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"] == boxes[3]["x"]
    assert boxes[2]["y"] < boxes[3]["y"]
    assert ["after", "after", "in any case"] == sorted(line["rule"] for line in facts["graph"]["lines"])
    for sign in ("✓ done", "✗ failed", "⊘ cancelled"):
        assert 2 <= page.count(sign), "in the graph, and in the table"
    assert [one["number"] for one in browser.facts(f"/flows/default/{failed}?state=failed")["members"]] == ["1"]
    assert [] == browser.facts(f"/flows/default/{failed}?name=app.*")["members"]
    first = browser.facts(f"/flows/default/{failed}?limit=3")
    assert ["3"] == [
        one["number"] for one in browser.facts(f"/flows/default/{failed}?after={first['next']}")["members"]
    ]


def test_a_member_leads_to_its_job_and_the_job_to_its_flow(at, browser, failed):
    members = browser.facts(f"/flows/default/{failed}")["members"]
    job = members[1]["job"]

    assert None is members[2]["job"], "it was never pushed"
    assert 2 == browser.get(f"/flows/default/{failed}").text.count(f'href="/jobs/{job}?connection=default"')
    assert (failed, "failed") == tuple(browser.facts(f"/jobs/{job}")[key] for key in ("flow", "state"))
    assert f'href="/flows/default/{failed}"' in browser.get(f"/jobs/{job}").text


def test_a_failed_flow_is_resumed(at, browser, failed):
    path = f"/flows/default/{failed}"
    assert f'action="{path}/retry"' in browser.get(path).text

    assert f"flow {failed}: 1 job put back" == told(browser, f"{path}/retry")
    assert "running" == browser.facts(path)["state"]
    assert "none of its failed jobs could be put back; it is running" in told(browser, f"{path}/retry")
    for _ in range(2):
        end_next(at)
    assert "done" == browser.facts(path)["state"]
    assert [("flow retry", f"flow {failed} on connection default", 1)] == journal(at)


def test_a_flow_is_cancelled(at, browser):
    flow = Flow()
    flow.add(step.call("b"), after=flow.add(step.call("a")))
    found = flow.push_to(at.queue)
    path = f"/flows/default/{found}"
    assert f'action="{path}/cancel"' in browser.get(path).text

    assert f"flow {found}: cancelled" == told(browser, f"{path}/cancel")
    assert "cancelled, 1 still to end" == browser.facts(path)["state"]
    end_next(at)
    assert f"flow {found} is over: cancelled" == told(browser, f"{path}/cancel")
    assert f'action="{path}/cancel"' not in browser.get(path).text
    assert [("flow cancel", f"flow {found} on connection default", None)] == journal(at)


def test_who_may_only_look_is_shown_no_action(at, failed):
    with opened(config_of(at), "viewer") as browser:
        path = f"/flows/default/{failed}"
        assert f"{path}/retry" not in browser.get(path).text
        assert 403 == browser.post(f"{path}/retry").status


def test_the_name_of_a_flow_is_hidden_with_the_data_of_jobs(at, failed):
    with opened(config_of(at, data="keys")) as browser:
        for path in ("/flows", f"/flows/default/{failed}"):
            assert "album" not in browser.get(path).text.replace("album 7 or album*", "")
            assert "album" not in browser.get(f"/api/v1{path}").text
        assert 403 == browser.get("/flows?flow=album*").status
    with opened(config_of(at)) as browser:
        assert "album" in browser.get(f"/flows/default/{failed}").text


def test_of_a_flow_that_is_gone_nothing_is_known(browser):
    got = browser.get("/flows/default/nobody")

    assert 404 == got.status
    assert "Nothing is known of this flow" in got.text
    for verb in ("retry", "cancel"):
        assert 404 == browser.post(f"/flows/default/nobody/{verb}").status


def test_jobs_that_a_running_one_has_added_have_names_and_are_drawn_behind_it(at, browser):
    flow = Flow()
    flow.add(step.call("end"), after=flow.add(split.call(3)))
    found = flow.push_to(at.queue)
    at.work("--modules", "tests.support.flowapp")
    facts = browser.facts(f"/flows/default/{found}")

    assert ["flow.split", *["flow.step"] * 4] == [one["name"] for one in facts["members"]]
    assert ["0", "0.0", "0.1", "0.2", "1"] == [one["number"] for one in facts["members"]]
    assert 3 == [line["rule"] for line in facts["graph"]["lines"]].count("added")


def members(*edges: str, letter: str = "w", name: str = "app.load") -> list[MemberRecord]:
    """For each the edges of one, in order."""
    return [
        MemberRecord(str(number), letter, tuple(text.split()), name) for number, text in enumerate(edges)
    ]  # fmt: skip


@pytest.mark.parametrize(("members", "edges", "drawn"), [(20_000, 5, True), (20_001, 0, False), (10_001, 10, False)])
def test_a_flow_of_very_many_members_or_edges_is_not_drawn(members, edges, drawn):
    rows = [MemberRecord(str(number), "w", ("1s",) * edges, "") for number in range(members)]

    assert drawn is may_be_drawn(rows)


@pytest.mark.thorough("the test before it says which are not drawn")
def test_the_page_of_a_flow_that_is_not_drawn_has_its_jobs(at, browser):
    graph, most = Drawn({"a": []}), 20_001
    many = [graph.members[0]._replace(number=str(number)) for number in range(most)]
    at.queue.stores.flows.write(graph.flow._replace(total=most, roots=most), many)
    facts = browser.facts(f"/flows/default/{graph.id}")

    assert None is facts["graph"]
    assert facts["members"]
    assert "too large to be drawn" in browser.get(f"/flows/default/{graph.id}").text


def test_ten_thousand_members_in_one_place_are_one_box():
    group = [one._replace(letter="d") for one in members(*["10000s"] * 10_000)]
    graph = graph_of([*group[:-1], group[-1]._replace(letter="f"), MemberRecord("10000", "w", (), "app.merge")])

    assert [(0, "app.load", {"d": 9999, "f": 1}), (1, "app.merge", {"w": 1})] == [
        (box.layer, box.name, dict(box.letters)) for box in graph.boxes
    ]
    assert ("f", [(0, 1, "s")], 0) == (graph.boxes[0].letter, graph.lines, graph.left_out)


def test_what_follows_by_another_rule_is_a_box_of_its_own():
    group = members(*["70s"] * 70, "71s 72f 73a", "", "", "")

    assert [70, 1, 1, 1, 1] == [box.letters.total() for box in graph_of(group).boxes]


def test_a_box_of_many_says_how_many_are_done_and_what_asks_for_somebody():
    group = [one._replace(letter=letter) for one, letter in zip(members(*[""] * 70), "d" * 67 + "fkc", strict=True)]
    [box] = drawn("F" * 22, graph_of(group))["boxes"]

    assert ("67 of 70 done, 1 failed", "67 of 70 done, 1 failed, 1 cancelled, 1 skipped") == (
        box["brief"],
        box["words"],
    )
    assert ("70 × app.load", "failed", None) == (box["label"], box["state"], box["job"])


def test_many_chains_side_by_side_are_a_box_for_each_step():
    chains = [f"{number + 50}s" if number < 100 else "" for number in range(150)]
    graph = graph_of(members(*chains))

    assert [50, 50, 50] == [box.letters.total() for box in graph.boxes]
    assert [(0, 1, "s"), (1, 2, "s")] == graph.lines


def test_a_chain_that_is_too_long_is_drawn_from_its_beginning():
    graph = graph_of(members(*[f"{number + 1}s" for number in range(499)], ""))

    assert (MOST_BOXES, 500 - MOST_BOXES) == (len(graph.boxes), graph.left_out)


def test_edges_that_lead_nowhere_or_back_are_drawn_without_an_end():
    graph = graph_of(members("1s 77s", "0s"))

    assert [(0, 1, "s"), (1, 0, "s")] == graph.lines
    assert 2 == len(graph.boxes)


@pytest.mark.thorough("test_agreements.py types the number of failed jobs")
def test_a_flow_with_hundreds_of_failures_is_resumed_by_typing_their_number(at, browser):
    flow = Flow()
    for _ in range(101):
        flow.add(fails.call())
    found = flow.push_to(at.queue)
    for lease in taken(at.queue.stores.queue).values():
        ended(at.queue.stores.queue, lease, "f")
    path = f"/flows/default/{found}"

    assert re.search(r'name="typed"[^>]*pattern="101"', browser.get(path).text)
    assert 409 == browser.post(f"{path}/retry", {"typed": "3"}).status
    assert f"flow {found}: 101 jobs put back" == told(browser, f"{path}/retry", {"typed": "101"})
