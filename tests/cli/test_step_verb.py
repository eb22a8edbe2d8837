"""The steps that are kept of a job: shown by `queuepool job`, and forgotten by name."""

from __future__ import annotations

import json

import pytest

from queuepool.payload.lease import Lease
from tests.support.drivers import site_on
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("at")


@pytest.fixture(params=["redis", "sqlite", "postgres", "mariadb"])
def at(request):
    with site_on(request.param, request) as found:
        yield found


def begun(at: Site) -> tuple[str, Lease]:
    """A job that a worker has reserved, with its lease."""
    job = at.push()
    store = at.queue.stores.queue
    return job, store.reserve(["default"], store.join(), 1).leases[0]


def test_they_are_shown_in_their_order_with_their_values(at):
    job, lease = begun(at)
    kept = {"ship:10": b"null", "ship:9": b"null", "charge": b'{"id":"ch_7"}', "~rows": b"42"}
    kept["mail"] = b'"%s"' % (b"x" * 300)
    at.queue.stores.steps.keep(lease, job, kept)
    lines = at.run("job", *at.where, job).stdout.splitlines()
    shown = json.loads(at.run("job", *at.where, job, "--json").stdout)

    assert ['step charge: {"id": "ch_7"}', f'step mail: "{"x" * 199}…'] == lines[-5:-3]
    assert ["step ship:9: null", "step ship:10: null", "cursor rows: done up to 42"] == lines[-3:]
    assert {"name": "charge", "kind": "step", "value": {"id": "ch_7"}} == shown["steps"][0]
    assert {"name": "rows", "kind": "cursor", "value": 42} == shown["steps"][-1]


@pytest.mark.thorough("those of a job that has some are shown above, and no others")
def test_of_a_job_without_steps_none_are_shown(at):
    job, _ = begun(at)

    assert "step" not in at.run("job", *at.where, job).stdout
    assert [] == json.loads(at.run("job", *at.where, job, "--json").stdout)["steps"]


@pytest.mark.by_turns("name")
@pytest.mark.parametrize("name", ["charge", "rows"])
def test_one_is_forgotten_by_its_name(at, name):
    job, lease = begun(at)
    at.queue.stores.steps.keep(lease, job, {"charge": b"1", "~rows": b"42"})
    done = at.run("step", "forget", *at.where, job, name)
    again = at.run("step", "forget", *at.where, job, name, check=False)

    assert f"forgot step {name} of job {job}\n" == done.stdout
    assert (1, f"no step {name} is kept of job {job}\n") == (again.returncode, again.stderr)
    assert 1 == len(at.queue.stores.steps.of_job(job))
    [line] = at.queue.stores.journal.last(10)
    assert ("step forget", f"step {name} of job {job}") == (line.verb, line.subject)
