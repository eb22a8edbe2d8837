"""The story of a run on many hosts: only a fault of the very host explains a job that it had and that began again."""

from __future__ import annotations

from tests.bench.many_hosts.story import Story, told

SECOND = 1_000_000_000
HOSTS = [
    {"f": "host", "name": "cut", "master": 1},
    {"f": "host", "name": "well", "master": 2},
    {"f": "worker", "pid": 10, "master": 1},
    {"f": "worker", "pid": 20, "master": 2},
]


def hit(on: int) -> dict[str, object]:
    return {"f": "hit", "host": "cut", "how": "blackhole", "on": on}


def job(what: str, pid: int = 10) -> dict[str, object]:
    return {"f": what, "id": "h.0", "a": 1, "pid": pid}


def story(*events: dict[str, object]) -> Story:
    """A second between any two of them."""
    return told({"t": number * SECOND, **event} for number, event in enumerate([*HOSTS, *events], 1))


def test_a_job_that_began_again_is_explained_by_a_fault_of_its_host_alone():
    done = story(job("start"), hit(1), job("finish"), job("start", 20), hit(0))
    interrupted = story(job("start"), hit(1), hit(0), job("start", 20))
    anothers = story(job("start", 20), hit(1), job("finish", 20), job("start", 20), hit(0))
    later = story(job("start"), job("finish"), job("start", 20), hit(1))

    assert {"done twice: its host was hit by blackhole": 1} == done.twice
    assert {"begun again: its host was hit by blackhole": 1} == interrupted.twice
    assert ["h.0: done twice on well, 1.000 s after well"] == anothers.unexplained
    assert ["h.0: done twice on well, 1.000 s after cut"] == later.unexplained
    assert not done.unexplained + interrupted.unexplained


def test_how_soon_a_host_goes_on_is_measured_from_the_end_of_its_fault():
    measured = story(hit(1), hit(0), job("start")).spreads

    assert [1.0] == measured["the network's return to the host's next job"]
