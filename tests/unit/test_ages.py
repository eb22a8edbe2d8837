"""For how long a job has been ready, by its payload."""

from __future__ import annotations

import json

from queuepool.payload.envelope import Envelope, encode, ready_for
from tests.support.each import each


def test_the_age_counts_from_when_the_job_was_due():
    _, now = encode("app.ok", {}, Envelope(created_at=1000.25))
    _, later = encode("app.ok", {}, Envelope(created_at=1000, delay=600))

    assert 49.75 == ready_for(now, 1050.0)
    assert 20.0 == ready_for(later, 1620.0)
    assert 0.0 == ready_for(later, 1599.0)


@each(
    "fields",
    [
        {"createdAt": 1000, "delay": None, "attempts": 1},
        {"createdAt": 1000},
        {"delay": None},
        {"createdAt": "soon", "delay": None},
        {"createdAt": 1000, "delay": [1]},
        {"createdAt": 1e300, "delay": None},
        {"createdAt": True, "delay": None},
        [],
        None,
    ],
)
def test_a_payload_that_does_not_say_it_has_no_age(fields):
    assert ready_for(json.dumps(fields).encode(), 2000.0) is None


@each("raw", [None, b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_payload_has_no_age(raw):
    assert ready_for(raw, 2000.0) is None
