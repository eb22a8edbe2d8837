"""Incidents of hosts and their pools: more workers, fewer hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.incidents.incident import Answer, Incident, answer
from tests.incidents.scene import Scene
from tests.support.eventually import eventually

_POOLS = ("web1/billing", "web1/web", "web2/billing", "web2/web")


def _scale(scene: Scene) -> Iterator[Answer]:
    yield answer(scene, "queuepool scale +2 --everywhere --for 1h", *(f"{pool}: has 4 workers" for pool in _POOLS))
    yield answer(scene, "queuepool scale auto --everywhere", *(f"{pool}: has 2 workers" for pool in _POOLS))


def _drain(scene: Scene) -> Iterator[Answer]:
    scene.push("shop.render", [{"seconds": 5.0}] * 4, queue="images")
    scene.waits_for("queuepool status --all", "shop.render")
    ends = [f"web2/{pool}: {words}" for pool in ("billing", "web") for words in ("stopping, its running", "stopped")]
    yield answer(scene, "queuepool drain --on web2 --wait 120", *ends)
    left = ("pool billing on web2: left", "pool web on web2: left")
    yield answer(scene, "queuepool status --all", *left, only=("pool ",))
    scene.web2.wait()
    scene.web2.start()


def _lose(scene: Scene) -> Iterator[Answer]:
    scene.push("shop.render", [{"seconds": 30.0}] * 4, queue="images", track=3600.0)
    eventually(lambda: _shows_both(scene), within=90.0)
    scene.web2.lose()
    lost = ("pool web on web2: lost", "it ran shop.render")
    scene.waits_for("queuepool status --all", *lost, "pool billing on web2: lost")
    shown = ("on web2", "lost: it has published nothing")
    found = answer(scene, "queuepool status --all", *lost, code=5, only=shown)
    yield found
    job = _only(re.findall(r"it ran shop\.render ([0-9a-f-]{36})", found.told.words))
    scene.waits_for(f"queuepool job {job}", "host: web1")
    yield answer(scene, f"queuepool job {job}", "host: web1", "attempts: 2")
    scene.web2.start()


def _shows_both(scene: Scene) -> bool:
    """Whether web2 has published that pool web runs two jobs: what it began later, nobody could tell."""
    shown = scene.web1.console.types("queuepool status --all").words
    return any(pool.startswith("web on web2: running") and " busy=2 " in pool for pool in shown.split("pool "))


def _only(found: list[str]) -> str:
    assert len(found) == 1, found
    return found[0]


SCALE = Incident(
    "More workers for an hour, on all hosts",
    "A sale begins: each pool of each host is to have two workers more, and to lose them again by itself.",
    _scale,
    "The second command ends it early. `--on web2/web` means one pool; `max_workers` lets a pool do this by itself.",
)
DRAIN = Incident(
    "A host is to be emptied",
    "web2 needs a new kernel. Its running jobs are to finish, and nobody wants to log in there.",
    _drain,
    "Reboot it; its pools take jobs again as soon as they are started. Its pools need `remote = all` for this.",
)
LOSE = Incident(
    "A host is lost",
    "web2 is gone without a word. What did it run, and what becomes of that?",
    _lose,
    "Nothing has to be done: its jobs begin again when their leases end (`retry_after`), as this one has on web1. "
    "Bring the host back, or leave it: after an hour it is forgotten.",
)
