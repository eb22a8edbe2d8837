"""What can be seen from outside: in the store, among the processes, in the files."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from itertools import chain
from pathlib import Path

from tests.chaos.pool import title_of
from tests.chaos.rig import Rig
from tests.chaos.steps import STREAM, lock_of

_ID = re.compile(rb'"id\\?":\\?"([a-z]\d*\.\d+)\\?"')  # also within a record, whose payload is a text


def note_stored(rig: Rig) -> None:
    """Every job that the store still knows: failed, in quarantine, or in a queue."""
    for where, raw in chain.from_iterable(store.stored() for store in rig.stores):
        found = _ID.search(raw)
        rig.ledger.write("stored", where=where, id=found[1].decode() if found else "")
        if rig.canary.encode() in raw:
            rig.ledger.write("secret", where=where)


def note_copies(rig: Rig) -> None:
    """One stored copy of each job at any moment."""
    for moment in rig.store.at_once():
        for job_id, count in Counter(found[1] for raw in moment if (found := _ID.search(raw))).items():
            if count > 1:
                rig.ledger.write("copies", id=job_id.decode(), n=count)


def note_locks(rig: Rig) -> None:
    """The unique locks that are held, beside the jobs that should hold them."""
    jobs, names = rig.store.steps_and_locks()
    waiting = {int(found[1].decode().rpartition(".")[2]) for raw in jobs if (found := _ID.search(raw))}
    should = {number for number in waiting if lock_of(number)}
    held = {int(name.rpartition(":")[2]) for name in names}
    for what, numbers in (("unlocked", should - held), ("locked", held - should)):
        for number in sorted(numbers):
            rig.ledger.write(what, id=f"{STREAM}.{number}")


def note_outcomes(rig: Rig) -> None:
    """What Laravel will learn, of each job by its uuid."""
    for raw in rig.store.outcomes():
        outcome = json.loads(raw)
        rig.ledger.write("outcome", id=outcome["uuid"], how=outcome["job"].rpartition("@")[2])


def note_states(rig: Rig) -> None:
    """What is said of each tracked job."""
    for job_id, text in rig.store.states():
        rig.ledger.write("state", id=job_id, is_now=json.loads(text)["state"])


def note_resources(rig: Rig) -> None:
    """Of the long-lived: each master's descriptors and memory, the store's connections; and secrets in titles."""
    clients = rig.store.clients()
    for pool in rig.pools:
        if pool.process:
            pid = pool.process.pid
            rig.ledger.write("sample", pid=pid, fds=_fds(pid), rss=_rss(pid), clients=clients)
            for title in [title_of(pid), *pool.titles().values()]:
                if rig.canary in title:
                    rig.ledger.write("secret", where="title")


def commands(rig: Rig) -> int:
    """How many commands the pools have sent to the store."""
    return rig.store.commands([pid for pool in rig.pools for pid in pool.titles()])


def _fds(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def _rss(pid: int) -> int:
    """KiB."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024
    except OSError:
        return 0


def note_orphans(rig: Rig, patience: float = 15.0) -> list[int]:
    """Processes that are left of the pools: by the cookie in their environment, or by a pool's name in their title.

    Of those that were killed, a busy machine takes its time to bury the last.
    """
    end = time.monotonic() + patience
    while (found := _ours(rig)) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in found:
        rig.ledger.write("orphan", pid=pid, title=title_of(pid)[:120])
    return found


def _ours(rig: Rig) -> list[int]:
    mine = {os.getpid(), *rig.helpers()}
    return [
        pid
        for entry in os.listdir("/proc")
        if entry.isdigit() and (pid := int(entry)) not in mine and _is_ours(rig, pid)
    ]


def _is_ours(rig: Rig, pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return rig.cookie.encode() in environment or any(pool.name in title_of(pid) for pool in rig.pools)


def note_leftovers(rig: Rig) -> None:
    """Files of the runtime directory; a note for a hook that is to be called at the next start may stay."""
    for path in (rig.folder / "run").rglob("*"):
        if path.is_file() and not path.name.startswith("hook."):
            rig.ledger.write("leftover", path=str(path.relative_to(rig.folder)))


def note_secrets(rig: Rig) -> None:
    """The password in what the pools have written."""
    for path in [*rig.folder.glob("*.log"), *rig.folder.glob("*.out"), *(rig.folder / "run").rglob("*")]:
        if path.is_file() and rig.canary.encode() in path.read_bytes():
            rig.ledger.write("secret", where=path.name)
