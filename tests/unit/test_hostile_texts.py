"""Whatever reads foreign bytes takes time in proportion to them: none of it could keep a worker, or a steward, busy.

No speed is measured. With a step for each pair of bytes, a text of this size would take hours, so a limit of the
processor's time that is a thousand times too long for a reader in proportion tells the two apart on any machine.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from queuepool.errors import BadArguments, BadPayload
from queuepool.payload import php_unserialize, strict_json
from queuepool.payload.command import command_of
from queuepool.payload.context import values_of
from queuepool.payload.encrypter import CannotDecrypt, encrypter_of
from queuepool.payload.envelope import counted, decode, digest_of, ready_for
from queuepool.payload.signing import Signer
from queuepool.payload.strict_json import depth_of
from queuepool.stores.control import notice_in
from queuepool.stores.due_log import DueLine
from queuepool.stores.journal import Action
from queuepool.stores.records import json_in
from queuepool.stores.values import Mark
from tests.support.hostile_texts import hostile

SIZE, SECONDS = 64 * 1024, 30
KEY = ("k1", "0123456789abcdef")


def as_text(raw: bytes) -> str:
    return raw.decode("latin-1")


READERS: Mapping[str, Callable[[bytes], object]] = {
    "strict JSON": strict_json.read_object,
    "depth": depth_of,
    "payload": decode,
    "counted": lambda raw: counted(raw, 7),
    "digest": digest_of,
    "signed or not": lambda raw: Signer((KEY,), required=False).verify(raw, "default"),
    "signed": lambda raw: Signer((KEY,), required=True).verify(raw, "default"),
    "notice": notice_in,
    "age": lambda raw: ready_for(raw, 0.0),
    "mark of a schedule": Mark.from_text,
    "line of the journal": Action.from_text,
    "line of a schedule": DueLine.from_text,
    "JSON of ours": json_in,
    "PHP": lambda raw: php_unserialize.parse(as_text(raw)),
    "command": lambda raw: command_of({"command": as_text(raw)}, encrypter_of("aes-256-cbc", [bytes(32)])),
    "context": lambda raw: values_of({"data": {"a": as_text(raw)}}, "data"),
}
REFUSALS = (BadPayload, BadArguments, CannotDecrypt, php_unserialize.PhpDataRefused)


def read_all(read: Callable[[bytes], object]) -> None:
    for raw in hostile(SIZE).values():
        with suppress(*REFUSALS):
            read(raw)


def exit_code_of(work: Callable[[], None]) -> int:
    """The end of a child that does this within ``SECONDS`` of its processor's time; else its signal, negative."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    try:
        work()
    except BaseException:
        os._exit(1)
    os._exit(0)


@pytest.mark.parametrize("reader", READERS)
def test_no_text_takes_more_than_its_size_in_time(reader):
    assert 0 == exit_code_of(lambda: read_all(READERS[reader]))
