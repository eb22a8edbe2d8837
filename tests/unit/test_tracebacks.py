"""Tracebacks are cut to the user's part of an error."""

from __future__ import annotations

import importlib
import re
from sqlite3 import IntegrityError

import pytest

from queuepool.errors import BootFailure, TimedOut
from queuepool.log import tracebacks as failures
from queuepool.worker import boot
from tests.support.each import each

OURS = failures.__file__.replace("log/tracebacks.py", "worker/attempt.py")
DUMP = f"""Timeout!

Thread 0x01 (most recent call first):
  File "/usr/lib/python3/threading.py", line 1 in wait

Current thread 0x02 (most recent call first):
  File "/app/jobs.py", line 7 in deep
  File "/app/jobs.py", line 3 in hang
  File "{OURS}", line 152 in _call
  File "/usr/lib/python3/click/core.py", line 9 in invoke"""


def test_a_dump_ends_where_the_users_code_was_called_from():
    kept = failures.text_of(TimedOut("late", DUMP))

    assert 'File "/app/jobs.py", line 3 in hang' == kept.splitlines()[-1].strip()
    assert "threading.py" in kept


def test_a_dump_that_is_all_ours_stays_whole():
    dump = f'Current thread 0x02:\n  File "{OURS}", line 1 in _call'

    assert dump == failures.users_part(dump)


BOOT = failures.__file__.replace("log/tracebacks.py", "worker/boot.py")
IMPORTING = f"""Current thread 0x01 (most recent call first):
  File "/usr/lib/python3/redis/connection.py", line 5 in read
  File "{OURS}", line 30 in push
  File "/app/shop/models.py", line 7 in <module>
  File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed
  File "<frozen importlib._bootstrap>", line 1176 in _find_and_load
  File "/app/shop/__init__.py", line 3 in <module>
  File "<frozen importlib._bootstrap>", line 1204 in _gcd_import
  File "{importlib.__file__}", line 126 in import_module
  File "{BOOT}", line 68 in _carry_out
  File "{OURS}", line 50 in import_modules
  File "/usr/lib/python3/click/core.py", line 9 in invoke"""


def test_a_dump_of_an_import_has_the_frames_within_it_and_none_of_pythons_import():
    files = ["/usr/lib/python3/redis/connection.py", OURS, "/app/shop/models.py", "/app/shop/__init__.py"]

    assert files == re.findall('File "(.*)"', failures.imports_part(IMPORTING))


def test_a_module_that_is_not_there_is_told_without_our_frames(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BootFailure) as failure:
        boot.import_modules(["not_there"])

    assert str(failure.value).startswith(f"cannot import not_there: there is no not_there in {tmp_path}")
    assert "" == failure.value.trace


def test_a_module_that_raises_is_told_from_its_own_first_line_on(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_at_import.py").write_text("x = 1\nraise RuntimeError('half done')\n")
    with pytest.raises(BootFailure) as failure:
        boot.import_modules(["broken_at_import"])

    assert "boot.py" not in failure.value.trace
    assert "importlib" not in failure.value.trace
    assert "line 2" in failure.value.trace
    assert "cannot import broken_at_import: RuntimeError: half done" == str(failure.value)
    assert "RuntimeError: half done" not in failure.value.trace.splitlines()


# The headline of a record


def inner() -> None:
    raise KeyError("inner")


def chained(error: BaseException, *, cause: bool) -> None:
    try:
        inner()
    except KeyError as led_to:
        if cause:
            raise error from led_to
        raise error  # noqa: B904 - that led to it all the same


def noted(error: BaseException, note: str = "see the manual\n\nin two parts") -> BaseException:
    error.add_note(note)
    return error


def group() -> BaseException:
    return ExceptionGroup("both", [ValueError("one"), noted(TypeError("two"))])


def record(error: BaseException, cause: bool | None) -> str:
    """What is recorded of it, raised as it is or while another one was handled."""
    try:
        if cause is None:
            raise error
        chained(error, cause=cause)
    except BaseException as caught:
        return failures.text_of(caught)
    raise AssertionError


DETAIL = 'duplicate key value violates unique constraint "x"\nDETAIL:  Key (id)=(1) already exists.'
LONG = "x" * failures.MAX_TEXT


@each(
    ("make", "expected"),
    [
        (lambda: ValueError("plain"), "ValueError: plain"),
        (lambda: ValueError(), "ValueError"),
        (lambda: ValueError("first\nsecond\n  third"), "ValueError: first"),
        (
            lambda: ValueError(f"of another process\n{record(ValueError('theirs'), None)}"),
            "ValueError: of another process",
        ),
        (lambda: IntegrityError(DETAIL), f"sqlite3.IntegrityError: {DETAIL.partition(chr(10))[0]}"),
        (lambda: noted(ValueError("plain")), "ValueError: plain"),
        (lambda: SyntaxError("bad", ("jobs.py", 1, 1, "a b")), "SyntaxError: bad"),
        (lambda: ValueError(LONG), f"ValueError: {LONG[:1000]}"),
        (group, "ExceptionGroup: both (2 sub-exceptions)"),
        (lambda: noted(ExceptionGroup("of groups", [group()])), "ExceptionGroup: of groups (1 sub-exception)"),
    ],
)
@pytest.mark.parametrize("cause", [None, True, False])
def test_a_headline_is_the_class_and_the_first_line_of_the_error_itself(make, expected, cause):
    found = failures.headline(record(make(), cause))

    assert found.startswith(expected)
    assert len(found) == len(expected) or LONG[:100] in expected


@each(
    ("text", "expected"),
    [
        ("", ""),
        (failures.text_of(TimedOut("late", DUMP)), "TimedOut: late"),
        ("Exception: no in /srv/a.php:3\nStack trace:\n#0 {main}", "Exception: no in /srv/a.php:3"),
        ("    indented", "    indented"),
    ],
)
def test_a_headline_of_what_is_no_traceback_is_its_first_line(text, expected):
    assert expected == failures.headline(text)


def test_a_headline_is_found_though_the_middle_of_the_text_was_cut():
    try:
        try:
            raise ValueError(LONG)
        except ValueError as led_to:
            raise TypeError("of all") from led_to
    except TypeError as caught:
        text = failures.text_of(caught)

    assert "[…]" in text
    assert "TypeError: of all" == failures.headline(text)
