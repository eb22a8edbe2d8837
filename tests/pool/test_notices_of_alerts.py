"""Notices of alerts leave in a process of their own: by real programs, and to a real HTTP server."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from queuepool.alerts.sending import Outbox
from queuepool.config.alerts import AlertSettings, Webhook
from queuepool.events import AlertUnsent, Event
from tests.support.eventually import eventually
from tests.support.lines import whole_lines
from tests.support.pools import is_gone, psutil_gone
from tests.support.webhooks import hook, plain

NOTICE = {
    "state": "raised", "kind": "wait", "subject": "default", "value": 75.0, "limit": 60.0,
    "since": "2026-11-23T03:00:00Z", "pool": "default", "host": "web1", "text": "queue default: 75 s",
}  # fmt: skip
COOKIE = "board.1-1.0.1.alerts"


class Events:
    """What an outbox emits."""

    def __init__(self) -> None:
        self.all: list[Event] = []

    def emit(self, event: Event) -> None:
        self.all.append(event)

    @property
    def problems(self) -> list[str]:
        return [event.problem for event in self.all if isinstance(event, AlertUnsent)]


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "queuepool")
    logging.getLogger("queuepool").propagate = True
    return caplog


def outbox(events: Events, *command: object, webhook: Webhook | None = None) -> Outbox:
    settings = AlertSettings(program=tuple(map(str, command)), webhook=webhook or Webhook())
    return Outbox(settings, "default", COOKIE, events)


def send(box: Outbox, *notices: dict[str, Any]) -> float:
    """Add them and wait until none is left; returns the seconds that it took."""
    began = time.monotonic()
    for notice in notices or (NOTICE,):
        box.add(notice)
    eventually(lambda: box.step() is None, within=120)
    return time.monotonic() - began


def script(folder: Path, text: str, mode: int = 0o755) -> Path:
    path = folder / "page"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def marked() -> list[int]:
    """The processes with our cookie."""
    found = []
    for process in psutil.process_iter():
        with psutil_gone():
            try:
                if process.environ().get("QUEUEPOOL_WORKER") == COOKIE and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except psutil.AccessDenied:
                continue
    return found


# A program


def test_a_program_gets_the_notice_as_json_on_its_standard_input(events, tmp_path, log):
    send(outbox(events, script(tmp_path, f"cat > {tmp_path}/got; echo $1 sent"), "ops team"))

    assert NOTICE == json.loads((tmp_path / "got").read_text())
    assert [] == events.all
    assert ["exec printed: ops team sent"] == log.messages


@pytest.mark.bad_input("B151")
@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        (None, 0o755, "No such file or directory"),
        ("true", 0o644, "Permission denied"),
        ("exit 3", 0o755, "exit code 3"),
        ("kill -9 $$", 0o755, "signal 9 (SIGKILL)"),
    ],
)
def test_a_program_that_cannot_send_is_reported_once(events, tmp_path, text, mode, problem):
    path = script(tmp_path, text, mode) if text else tmp_path / "page"
    box = outbox(events, path)
    send(box)
    send(box, {**NOTICE, "subject": "imports"})

    assert 1 == len(events.all)
    assert problem in events.problems[0]
    assert ("exec", "wait", "default") == (events.all[0].by, events.all[0].kind, events.all[0].subject)


def test_a_program_that_fails_again_is_reported_again(events, tmp_path):
    path = script(tmp_path, "exit 3")
    box = outbox(events, path)
    send(box)
    script(tmp_path, "exit 0")
    send(box)
    script(tmp_path, "exit 3")
    send(box)

    assert ["exit code 3"] * 2 == events.problems


@pytest.mark.bad_input("B151")
def test_a_program_may_print_a_hundred_megabytes(events, tmp_path, log):
    send(outbox(events, script(tmp_path, "cat > /dev/null; head -c 100000000 /dev/zero | tr '\\0' x")))

    assert {"it took longer than 10 s"} >= set(events.problems)  # on a machine that is busy
    assert [2000 + len("exec printed: ")] == [len(message) for message in log.messages]


@pytest.mark.bad_input("B151")
def test_a_program_that_hangs_is_killed(events, tmp_path):
    took = send(outbox(events, script(tmp_path, f"trap '' TERM INT; echo $$ > {tmp_path}/pid; sleep 1000")))

    assert ["it took longer than 10 s"] == events.problems
    assert 9 < took
    eventually(lambda: is_gone(int((tmp_path / "pid").read_text())))
    eventually(lambda: [] == marked())


@pytest.mark.bad_input("B151")
def test_what_a_program_leaves_behind_is_killed(events, tmp_path, log):
    daemon = f"setsid sh -c 'setsid sleep 1000 & echo $! > {tmp_path}/pid' & sleep 1001 & wait %1; exit 0"
    send(outbox(events, script(tmp_path, daemon)))

    assert [] == events.all
    assert any("processes behind, which were killed" in message for message in log.messages)
    eventually(lambda: is_gone(int((tmp_path / "pid").read_text())))
    eventually(lambda: [] == marked())


def test_notices_are_sent_one_after_the_other_and_the_latest_of_an_alert(events, tmp_path):
    box = outbox(events, script(tmp_path, f"cat >> {tmp_path}/got; echo >> {tmp_path}/got"))
    send(box, NOTICE, {**NOTICE, "kind": "overdue"}, {**NOTICE, "state": "cleared"})

    got = [json.loads(line) for line in whole_lines(tmp_path / "got")]
    assert [("overdue", "raised"), ("wait", "cleared")] == [(one["kind"], one["state"]) for one in got]


@pytest.mark.bad_input("B151")
def test_at_most_a_hundred_notices_wait_and_the_oldest_are_given_up(events, tmp_path):
    box = outbox(events, script(tmp_path, "exit 0"))
    for number in range(103):
        box.add({**NOTICE, "subject": f"queue{number}"})

    assert ["more than 100 notices are waiting"] == events.problems
    assert "queue0" == events.all[0].subject


@pytest.mark.bad_input("B151")
def test_a_program_that_prints_the_widest_characters_is_sent_to(events, tmp_path, log):
    send(outbox(events, sys.executable, "-c", "print('\U0001f600' * 5000)"))

    assert [] == events.all
    assert [f"exec printed: {chr(0x1F600) * 2000}"] == log.messages


@pytest.mark.bad_input("B151")
def test_a_program_whose_child_never_stops_to_print_holds_up_no_other_notice(events, tmp_path):
    send(outbox(events, script(tmp_path, "yes & exit 0")))

    assert [] == events.all  # as when it is waited for: it took longer than 10 s
    eventually(lambda: [] == marked())


# A webhook


def test_a_webhook_gets_the_notice_as_json(events):
    with hook() as server:
        send(outbox(events, webhook=Webhook(server.url)))

    assert ([], [NOTICE]) == (events.all, server.bodies)


def test_slack_gets_a_line_of_text(events):
    with hook() as server:
        send(outbox(events, webhook=Webhook(server.url, "slack")))

    assert [{"text": "raised on web1, pool default: queue default: 75 s"}] == server.bodies


@pytest.mark.bad_input("B152")
def test_an_answer_that_is_no_success_is_reported(events):
    with hook(plain(500)) as server:
        send(outbox(events, webhook=Webhook(server.url)))

    assert ["the server answered 500 Internal Server Error"] == events.problems


@pytest.mark.bad_input("B152")
def test_no_redirect_is_followed(events):
    with hook() as other, hook(plain(302, Location=other.url)) as server:
        send(outbox(events, webhook=Webhook(server.url)))

    assert ["the server answered 302 Found"] == events.problems
    assert [] == other.paths


@pytest.mark.bad_input("B152")
def test_of_a_long_answer_the_beginning_is_read(events):
    with hook(plain(200, b"x" * 10_000_000)) as server:
        send(outbox(events, webhook=Webhook(server.url)))

    assert ([], 1) == (events.all, len(server.bodies))


@pytest.mark.bad_input("B152")
def test_a_server_that_never_answers_is_given_up(events):
    over = threading.Event()
    with hook(lambda _: over.wait() and None) as server:
        try:
            send(outbox(events, webhook=Webhook(server.url)))
        finally:
            over.set()

    assert ["it took longer than 10 s"] == events.problems or "timed out" in events.problems[0]
    eventually(lambda: [] == marked())


@pytest.mark.bad_input("B152")
def test_a_server_that_is_not_there_is_reported_without_its_url(events):
    with hook() as server:
        url = server.url
    send(outbox(events, webhook=Webhook(f"{url}/s3cr3t")))

    assert ["the server cannot be reached: [Errno 111] Connection refused"] == events.problems


@pytest.mark.bad_input("B152")
@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
def test_a_host_that_cannot_be_one_is_reported_in_a_line(events, log, host):
    send(outbox(events, webhook=Webhook(f"http://{host}/s3cr3t")))

    assert ["the server's name or its answer is malformed: UnicodeError"] == events.problems
    assert [] == log.messages


@pytest.mark.bad_input("B152")
def test_a_certificate_that_nobody_trusts_is_refused(events, tmp_path):
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    files = ["-keyout", tmp_path / "key", "-out", tmp_path / "crt"]
    subprocess.run(
        ["openssl", *made.split(), *files, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True
    )
    both = tmp_path / "both.pem"
    both.write_text((tmp_path / "key").read_text() + (tmp_path / "crt").read_text())
    with hook(certificate=both) as server:
        send(outbox(events, webhook=Webhook(server.url)))
        refused = list(events.problems)
        events.all.clear()
        os.environ["SSL_CERT_FILE"] = str(tmp_path / "crt")
        try:
            send(outbox(events, webhook=Webhook(server.url)))
        finally:
            del os.environ["SSL_CERT_FILE"]

    assert 1 == len(refused)
    assert "certificate verify failed" in refused[0]
    assert ([], [NOTICE]) == (events.all, server.bodies)
