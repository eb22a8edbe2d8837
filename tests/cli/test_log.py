"""Log lines: which events are logged, where they go, and how they look."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool import log
from queuepool.config.settings import PoolSettings
from queuepool.errors import TimedOut, TooManyAttempts
from queuepool.events import (
    BootFailed,
    Event,
    HookRaised,
    JobEvent,
    JobExceptionOccurred,
    JobFacts,
    JobFailed,
    JobProcessed,
    JobProcessing,
    JobQuarantined,
    JobReleased,
    Looping,
    PoolPaused,
    StoreLost,
    WorkerStopping,
)
from queuepool.events.listeners import Listeners
from queuepool.log.formats import fields_of, line_of
from queuepool.log.tracebacks import MAX_TEXT, summary, text_of
from queuepool.unix.escape import escaped
from tests.support.each import each
from tests.support.own_logger import restored

FACTS = JobFacts("9f3c", "9f3c", "app.mail", "emails", 2)
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
Tell = Callable[..., list[str]]

FLOOD = """
import logging, sys
from queuepool import log
from queuepool.config.settings import PoolSettings
log.setup(PoolSettings(), "master", write_timeout=0.0)
for number in range(5_000):
    logging.getLogger("queuepool").error("line %d %s", number, "x" * 100)
print("alive")
"""


class Hostile(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raised(error: BaseException) -> BaseException:
    """With a traceback, as a job's is."""
    try:
        raise error
    except BaseException as caught:
        return caught


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    """The package's, left as it was."""
    with restored() as found:
        yield found


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Tell these events to a log with these settings; gives its lines."""

    def tell(*events: Event, **settings: Any) -> list[str]:
        path = tmp_path / "log"
        log.setup(PoolSettings(log=path, **settings), "worker=2", write_timeout=0.0)
        listeners = Listeners()
        log.listen(listeners)
        for event in events:
            listeners.emit(event)
        return path.read_text().splitlines() if path.exists() else []

    return tell


# Lines


def test_a_line_says_when_how_grave_who_and_what(tell):
    [line] = tell(JobReleased(FACTS, 5.0, None))

    expected = rf"{STAMP} INFO pool=default worker=2 pid=\d+ job released id=9f3c queue=emails job=app\.mail "
    expected += r"attempts=2 delay=5\.0"
    assert re.fullmatch(expected, line)


def test_an_error_is_in_the_line_by_its_name_and_message(tell):
    [line] = tell(JobFailed(FACTS, ValueError("told to fail")))

    assert line.endswith('exception=ValueError message="told to fail"')


def test_an_id_that_is_no_uuid_is_shown_beside_it():
    facts = JobFacts("i", "u", "ok", "default", 1)

    assert "job processing id=i uuid=u queue=default job=ok attempts=1" == line_of(JobProcessing(facts))


def test_values_with_spaces_are_quoted():
    assert 'store lost, waiting for it problem="no route to host"' == line_of(StoreLost("no route to host"))


def test_several_values_stand_in_one():
    assert "queues paused queues=high,default" == line_of(PoolPaused(("high", "default")))


def test_the_trace_of_what_a_job_raised_stands_below_it(tell):
    head, *trace = tell(JobExceptionOccurred(FACTS, raised(ValueError("told to")), 0.5))

    assert "job raised" in head
    assert all(line.startswith("    ") for line in trace)
    assert ("Traceback (most recent call last):", "ValueError: told to") == (trace[0].strip(), trace[-1].strip())


def test_an_error_that_is_no_bug_needs_no_trace(tell):
    assert 1 == len(tell(JobExceptionOccurred(FACTS, raised(TooManyAttempts("app.mail", 2, 1)), 0.0)))


def test_why_the_modules_did_not_import_stands_below_it(tell):
    head, *trace = tell(BootFailed(2, "Traceback\nImportError: x"))

    assert "boot failed worker=2" in head
    assert ["    Traceback", "    ImportError: x"] == trace


UNSAFE = "a\nb\rc\x1b[31md\x07e\x00f\x7fg\x85h\u2028i\u2029j\u202ek\u2066l\x9bm"


def test_whatever_a_job_is_called_it_is_one_harmless_line(tell):
    facts = JobFacts(UNSAFE, UNSAFE, UNSAFE, UNSAFE, 1)

    [line] = tell(JobFailed(facts, ValueError(UNSAFE)))

    assert line.isprintable()
    assert r"a\nb\rc\x1b[31md\x07e" in line


@given(st.text(), st.text(st.sampled_from(UNSAFE + " =\"\\'é\u061c\ufeff\U000e0041")))
def test_whatever_is_told_is_one_line_of_fields_that_are_known(text, unsafe):
    found = fields_of(JobFailed(JobFacts(text, unsafe, unsafe, text, 1), ValueError(unsafe + text)))
    line = escaped(line_of(JobFailed(JobFacts(text, unsafe, unsafe, text, 1), ValueError(unsafe + text))))

    assert [line] == line.splitlines()
    assert [] == [char for char in line if category(char) in ("Cc", "Zl", "Zp") or 0x202A <= ord(char) <= 0x202E]
    words = re.findall(r'(?:^| )(\w+)=(?:"(?:[^"\\]|\\.)*"|[^ "=]*)(?= |$)', line)
    assert set(words) <= set(found)
    assert len(words) == len(set(words))


@each("char", "\u061c\u180e\u200b\u200e\u2060\u2064\u206a\ufeff\ufff9\U000e0001\U000e0041")
def test_what_nobody_sees_is_shown(char):
    assert f"a{char!r}b".replace("'", "") == escaped(f"a{char}b")


def test_the_joiners_of_scripts_and_emoji_are_left_alone():
    assert "👨\u200d👩 می\u200cخواهم" == escaped("👨\u200d👩 می\u200cخواهم")


TITLES = """
import sys
from pathlib import Path
from queuepool.unix import proc
for text in sys.stdin.read().split("\\0"):
    proc.show(f"queuepool: {text}")
    title = Path("/proc/self/cmdline").read_bytes().rstrip(b"\\0 ")
    assert title.startswith(b"queuepool: ") and len(title) <= 200, title
    assert all(32 <= byte < 127 for byte in title), title
"""


def test_no_title_commands_a_terminal():
    texts = [UNSAFE.replace("\0", ""), "x" * 10_000, "é" * 10_000, "\udcff", "\u202e", "\x1b]0;root\x07", "a\nb"]
    done = subprocess.run(
        [sys.executable, "-c", TITLES], input="\0".join(texts).encode("utf-8", "surrogatepass"), capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:surrogateescape"}, check=False,
    )  # fmt: skip

    assert b"" == done.stderr


def test_whatever_a_trace_holds_it_is_harmless(tell):
    lines = tell(JobExceptionOccurred(FACTS, raised(ValueError("\x1b[2J\nINFO forged")), 0.0))

    assert all(line.isprintable() for line in lines)
    assert all(line.startswith("    ") for line in lines[1:])


def test_what_has_no_unsafe_character_is_left_alone():
    assert "é 😀 /\\" == escaped("é 😀 /\\")


def test_half_a_character_harms_no_log(tell):
    [line] = tell(StoreLost("a\udcffb"))

    assert "problem=a" in line


def test_a_message_cannot_pass_for_another_field():
    line = line_of(JobFailed(FACTS, ValueError('x" job=root "y')))

    assert {"message": 'x" job=root "y', "job": "app.mail"}.items() <= dict(
        word.split("=", 1) for word in shlex.split(line) if "=" in word
    ).items()


# Levels


QUIET_TO_LOUD = [JobProcessed(FACTS, 0.1), JobReleased(FACTS, 5.0, None), StoreLost("gone")]


@pytest.mark.parametrize(
    ("settings", "count"), [({}, 2), ({"verbose": True}, 3), ({"quiet": True}, 1), ({"json": True}, 2)]
)
def test_the_settings_say_how_much_is_logged(tell, settings, count):
    assert count == len(tell(*QUIET_TO_LOUD, **settings))


def test_what_nobody_logs_nobody_wants():
    log.setup(PoolSettings(quiet=True), "worker=1", write_timeout=0.0)
    listeners = Listeners()
    log.listen(listeners)

    assert (False, True) == (listeners.wants(JobProcessed), listeners.wants(JobFailed))


# JSON


def test_a_json_line_has_laravels_names(tell):
    [line] = tell(JobFailed(FACTS, ValueError("told to")), json=True)

    found = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", found.pop("timestamp"))
    assert isinstance(found.pop("pid"), int)
    expected = {
        "level": "error", "pool": "default", "role": "worker=2", "connection": "default", "event": "JobFailed",
        "status": "failed", "result": "failed", "id": "9f3c", "uuid": "9f3c", "queue": "emails", "job": "app.mail",
        "attempts": 2, "exception": "ValueError", "message": "told to",
    }  # fmt: skip
    assert expected == found


@each(
    ("event", "status", "result"),
    [
        (JobProcessing(FACTS), "starting", None),
        (JobProcessed(FACTS, 0.25), "success", "deleted"),
        (JobReleased(FACTS, 5.0, ValueError()), "released_after_exception", "released"),
        (JobFailed(FACTS, ValueError()), "failed", "failed"),
    ],
)
def test_the_states_of_a_job_are_laravels(event, status, result):
    found = fields_of(event)

    assert (status, result) == (found["status"], found.get("result"))


def test_a_job_that_its_handler_released_did_not_so_after_an_exception():
    assert "released" == fields_of(JobReleased(FACTS, 5.0, None)).get("status")


def test_a_duration_is_in_seconds():
    assert 0.1235 == fields_of(JobProcessed(FACTS, 0.12346))["duration"]


def test_a_json_line_is_one_line_whatever_it_holds(tell):
    [line] = tell(JobFailed(JobFacts(UNSAFE, "", UNSAFE, "q", 1), raised(ValueError(UNSAFE))), json=True)

    assert line.isascii()
    assert UNSAFE == json.loads(line)["id"]


def test_a_json_line_holds_the_trace(tell):
    [line] = tell(JobExceptionOccurred(FACTS, raised(ValueError("told to")), 0.5), json=True)

    assert json.loads(line)["trace"].endswith("ValueError: told to\n")


def test_what_is_no_event_is_a_message(tell, logger):
    tell(json=True)

    logger.error("a %s", "word")

    found = json.loads(Path(logger.out.path).read_text())  # type: ignore[attr-defined]
    assert ("a word", "error") == (found["message"], found["level"])


# Where it goes


def test_a_log_that_was_moved_away_goes_on_in_a_new_file(tell, tmp_path, logger):
    tell(StoreLost("first"))
    (tmp_path / "log").rename(tmp_path / "log.1")

    logger.error("second")

    assert (tmp_path / "log").read_text().endswith(" second\n")


def test_without_a_file_lines_go_to_standard_error(capfd, logger):
    log.setup(PoolSettings(), "master", write_timeout=0.0)

    logger.warning("a word")

    assert re.fullmatch(rf"{STAMP} WARNING pool=default master pid=\d+ a word\n", capfd.readouterr().err)


@pytest.mark.fault("F32")
def test_a_pipe_that_nobody_reads_loses_lines_and_stops_nobody():
    with subprocess.Popen(
        [sys.executable, "-c", FLOOD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as flooding:
        assert flooding.stdout
        assert flooding.stderr
        assert "alive\n" == flooding.stdout.readline()
        assert "line 0 " in flooding.stderr.readline()


@pytest.mark.by_turns("where")
@pytest.mark.fault("F32")
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_a_log_that_cannot_be_written_stops_nobody(where):
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {where}', sys.executable, FLOOD], capture_output=True, text=True, check=True
    )

    assert "alive\n" == done.stdout


# Listeners


def test_a_listener_hears_its_event_and_those_derived_from_it():
    heard: list[str] = []
    listeners = Listeners()
    for kind in (JobFailed, JobEvent, Event, StoreLost):
        listeners.add(kind, lambda event, kind=kind: heard.append(kind.__name__))

    listeners.emit(JobFailed(FACTS, ValueError()))

    assert ["JobFailed", "JobEvent", "Event"] == heard


def test_an_event_that_nobody_hears_is_not_wanted():
    listeners = Listeners()
    before = listeners.wants(JobFailed)
    listeners.add(JobEvent, print)

    assert (False, True, False) == (before, listeners.wants(JobFailed), listeners.wants(StoreLost))


def test_a_listener_that_raises_harms_nobody_and_is_logged(tell, tmp_path):
    tell()
    heard: list[Event] = []
    listeners = Listeners()
    listeners.add(StoreLost, lambda event: 1 / 0)
    listeners.add(StoreLost, heard.append)

    assert listeners.emit(StoreLost("gone"))
    assert 1 == len(heard)
    text = (tmp_path / "log").read_text()
    assert "raised for StoreLost" in text
    assert "ZeroDivisionError" in text


@each(("answers", "agreed"), [([None], True), ([0], True), ([False], False), ([False, True], False)])
def test_one_that_says_false_is_enough_to_hold_the_worker(answers, agreed):
    listeners = Listeners()
    for answer in answers:
        listeners.add(Looping, lambda event, answer=answer: answer)

    assert agreed is listeners.emit(Looping(("default",)))


def test_everybody_is_asked_even_if_the_first_said_false():
    asked: list[Event] = []
    listeners = Listeners()
    listeners.add(Looping, lambda event: False)
    listeners.add(Looping, asked.append)

    listeners.emit(Looping(()))

    assert 1 == len(asked)


# What an exception may do


@pytest.mark.parametrize("event", [JobFailed(FACTS, Hostile()), HookRaised(FACTS, "after_failed", Hostile())])
def test_an_exception_without_a_text_is_told_all_the_same(tell, event):
    [line, *_] = tell(event)

    assert "exception=Hostile" in line
    assert "RuntimeError" in line


def test_the_text_of_an_exception_is_bounded():
    text = text_of(ValueError("x" * 10_000_000))

    assert len(text) < MAX_TEXT + 10
    assert text.startswith("ValueError: xx")


def test_the_message_in_a_line_is_bounded():
    assert len(line_of(JobFailed(FACTS, ValueError("x" * 10_000_000)))) < 10_000


def test_an_exception_that_caused_itself_has_a_text():
    error = ValueError("round")
    error.__cause__ = error

    assert "ValueError: round" in text_of(error)


def test_an_attempt_lost_with_its_process_shows_what_faulthandler_left():
    assert "TimedOut: late\nFile x, line 3" == text_of(TimedOut("late", "File x, line 3"))


def test_a_summary_is_name_and_message():
    assert ["ValueError: why", "ValueError: "] == [summary(ValueError("why")), summary(ValueError())]


@pytest.mark.parametrize(
    "event", [WorkerStopping(1, "memory", 12, 7), JobQuarantined("default", "json")], ids=lambda e: type(e).__name__
)
def test_every_fact_of_an_event_is_in_its_line(event):
    line = line_of(event)

    assert line.startswith(event.words + " ")
    assert all(f"={value}" in line for value in fields_of(event).values() if value != type(event).__name__)
