"""Alerts in words: of one thing and of several."""

from __future__ import annotations

from queuepool.board.open_alerts import OpenAlert, words_of
from tests.support.each import each


@each(
    ("kind", "subject", "value", "words"),
    [
        ("quarantine", "mail", 1.0, "queue mail: 1 payload in quarantine (limit 1)"),
        ("quarantine", "mail", 2.0, "queue mail: 2 payloads in quarantine (limit 1)"),
        ("crashes", "web", 1.0, "pool web: 1 worker died within five minutes (limit 1)"),
        ("crashes", "web", 7.0, "pool web: 7 workers died within five minutes (limit 1)"),
        ("failed_flows", "web", 1.0, "pool web: 1 flow failed within five minutes (limit 1)"),
        ("stalled", "album", 9.0, "flow album: none of its jobs has begun or ended for 9 s (limit 1 s)"),
        ("parked", "gpu", 9.0, "limit gpu: a job has waited for a place for 9 s (limit 1 s)"),
        ("unused", "gpu", 9.0, "limit gpu: a place has been free for 9 s, though jobs wait for it (limit 1 s)"),
        ("failed", "failed jobs", 1.0, "failed jobs: 1 kept (limit 1)"),
    ],
)
def test_what_is_counted_is_named_by_its_number(kind, subject, value, words):
    assert words == words_of(OpenAlert(kind, subject, value, 1.0, since=0.0))
