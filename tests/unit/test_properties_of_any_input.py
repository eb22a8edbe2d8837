"""Properties that hold for any input; for payloads in a store see stores/test_counting_attempts.py."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import setproctitle
from hypothesis import given
from hypothesis import strategies as st

from queuepool.payload.envelope import Envelope, decode, encode
from queuepool.settlement.verdict import delay_after
from queuepool.stores.factory import Stores
from queuepool.unix import proc
from queuepool.unix.escape import escaped
from tests.support.commands import ROOT
from tests.support.effort import effort, patient
from tests.support.payload_strategies import anywhere, as_bytes, laravels, values
from tests.support.samples import new_jobs

pytestmark = patient
MANY = effort(200)
anything = st.text(st.characters())


@MANY
@given(data=values)
def test_the_data_of_a_job_is_what_was_pushed(data):
    assert data == decode(encode("app.ok", data, Envelope(created_at=0))[1]).data


@pytest.fixture
def store(stores: Stores) -> Any:
    return stores.queue


@pytest.mark.thorough("test_counting_attempts tries each way")
@MANY
@given(sample=anywhere() | laravels())
def test_attempts_are_counted_the_same_on_the_short_way_and_on_the_long_one(store, sample):
    store.clear("default")
    raw = as_bytes(*sample).strip()

    # A space at the end hides the ending that the short way looks for.
    store.push("default", new_jobs(raw, raw + b" "))

    short, long = store.reserve(["default"], 1, 2).leases
    assert short.receipt + b" " == long.receipt


@MANY
@given(attempts=st.integers(0, 2**16), backoff=st.lists(st.floats(0, 2**40)).map(tuple))
def test_a_delay_is_one_of_the_backoffs(attempts, backoff):
    assert delay_after(attempts, backoff) in (backoff or (0.0,))


@pytest.fixture
def title():
    before = setproctitle.getproctitle()
    yield setproctitle.getproctitle
    setproctitle.setproctitle(before)


def test_a_title_is_shown_also_when_a_variable_was_taken_out_of_the_environment_before():
    """As the service manager's are. The last one, as the title takes the place of all."""
    program = (
        "import os\nfrom queuepool.unix import proc\ndel os.environ['LAST']\nproc.show('queuepool: shown')\n"
        "print(open('/proc/self/cmdline').read())"
    )
    env = {"PYTHONPATH": str(ROOT), "LAST": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("queuepool: shown")


@MANY
@given(text=anything.map(lambda text: "queuepool: " + text * 9))
def test_a_title_is_one_line_of_at_most_200_printable_bytes(title, text):
    proc.show(text)

    assert title().isascii()
    assert title().isprintable()
    assert min(len(text), 200) == len(title())


@MANY
@given(text=anything)
def test_a_line_of_the_log_is_one_line_that_no_terminal_obeys(text):
    line = escaped(text)

    assert line.splitlines() in ([], [line])
    assert not any(char in line for char in "\x1b\x07\x08\r\n\x9b\u202e\u2028")


@MANY
@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_what_is_printable_is_logged_as_it_is(text):
    assert text == escaped(text)
