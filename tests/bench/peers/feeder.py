"""A queue in an environment of its own: ``python -m tests.bench.peers.feeder NAME``; elsewhere.py asks it.

A request is a line of JSON: which queue, a method and its arguments. So is each answer; the first one, unasked, says
what queues there are.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

from tests.bench.peers.peer import Peer, push_singly


def main(name: str, *packages: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the queue prints is no answer
    peers: list[Peer] = import_module(f"tests.bench.peers.with_{name}").PEERS
    found = ", ".join(f"{package} {version(package)}" for package in packages)
    about = f"{found}, on Python {platform.python_version()}"
    print(json.dumps({"about": about, "peers": [_facts(peer) for peer in peers]}), file=answers)
    for line in sys.stdin:
        which, method, arguments = json.loads(line)
        print(json.dumps(_METHODS[method](peers[which], *arguments)), file=answers)
    os._exit(0)  # a client's threads may wait for something


def _facts(peer: Peer) -> dict[str, Any]:
    names = ["name", "settings", "keeps", "strengths"]
    return {name: getattr(peer, name) for name in names} | {"fields": sorted(peer.fields)}


_METHODS: dict[str, Any] = {
    "bulk": lambda peer, job, first, end: peer.bulk(job, range(first, end)),
    "push_singly": push_singly,
    "commands": lambda peer, workers: peer.commands(workers),
}

if __name__ == "__main__":
    main(*sys.argv[1:])
