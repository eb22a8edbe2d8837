"""``queuepool check`` tries every right that the program needs."""

from __future__ import annotations

import re
from pathlib import Path

from queuepool.stores.redis import check as server

CHECK = Path(server.__file__)
STORES = CHECK.parent


def test_every_command_that_is_sent_is_tried():
    scripts = "\n".join(path.read_text() for path in STORES.rglob("*.lua"))
    python = "\n".join(path.read_text() for path in STORES.glob("*.py") if path != CHECK)
    sent = set(re.findall(r"redis\.call(?:, |\()'(\w+)'", scripts))
    sent |= set(re.findall(r"(?:command|blocking)\(\s*\"(\w+)\"", python))
    assert len(sent) > 30
    commands = [*server._commands_of_workers(*"abcde"), *server._commands_by_hand(*"abcd")]
    # Who may not scan sees the queues of the configuration, and lists no locks; who may not ask for INFO draws another
    # tag at each connect; and a job with a limit tells what is refused to it, which most pools never ask.
    tried = {str(words[0]) for words in commands} | {"DEL", "UNLINK", "SCAN", "PTTL", "INFO"}
    tried |= {"INCR", "TTL", "LPOP", "RPOP", "RPOPLPUSH", "HSCAN", "PERSIST"}
    # Sent for sentinels, in clusters, to wait for replicas, and to Horizon's keys.
    tried |= {"ROLE", "SUBSCRIBE", "CLUSTER", "WAIT", "SADD"}

    assert {name.upper() for name in sent} - tried == set()
