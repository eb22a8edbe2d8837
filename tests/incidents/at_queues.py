"""Incidents of queues: too many jobs, the wrong jobs, the wrong queue."""

from __future__ import annotations

from collections.abc import Iterator

from tests.incidents.incident import Answer, Incident, answer
from tests.incidents.scene import Scene

_RENDERS, _LETTERS, _CUSTOMERS = 3_000, 20_000, 500


def _grows(scene: Scene) -> Iterator[Answer]:
    scene.push("shop.render", ({"seconds": 0.5} for _ in range(_RENDERS)), queue="images")
    alert = "queue images: the next job has been ready"
    scene.waits_for("queuepool status --all", alert, "shop.render")
    yield answer(scene, "queuepool status --all", alert, "shop.render")
    yield answer(scene, "queuepool jobs images --by name", "shop.render")
    scene.clear("images")


def _wants_out(scene: Scene) -> Iterator[Answer]:
    _campaign(scene)
    jobs = _LETTERS // _CUSTOMERS
    yield answer(scene, "queuepool jobs campaign --where customer=4711 --count", str(jobs))
    dropped = f"{jobs} jobs dropped on connection redis: campaign {jobs}"
    yield answer(scene, "queuepool drop campaign --where customer=4711 --yes", dropped)
    scene.clear("campaign")
    scene.does("queuepool continue campaign")


def _moves(scene: Scene) -> Iterator[Answer]:
    _campaign(scene)
    # A worker that had asked for its next job before the pause may have got one.
    yield answer(
        scene, "queuepool move campaign slow --name shop.newsletter --yes", " jobs moved from campaign to slow"
    )
    scene.does("queuepool continue campaign")
    scene.works_off("slow")


def _campaign(scene: Scene) -> None:
    """A mailing to all customers that somebody has paused in time."""
    scene.does("queuepool pause campaign", scene.web2)
    for host in (scene.web1, scene.web2):
        scene.waits_for("queuepool status", "paused queues: campaign", host=host)
    customers = ({"customer": 4_500 + number % _CUSTOMERS} for number in range(_LETTERS))
    scene.push("shop.newsletter", customers, queue="campaign")


GROWS = Incident(
    "A queue grows",
    "An alert says that jobs of the queue `images` wait. Which pools are on it, what do they run, and what waits?",
    _grows,
    "If the workers are busy with the same job, look at what it waits for. If the hosts can bear more workers, "
    "`queuepool scale +4 --everywhere --for 1h`. If what the jobs need is down, `queuepool pause images` until it is "
    "back.",
)
WANTS_OUT = Incident(
    "One customer wants out of a mailing",
    f"{_LETTERS:,} jobs of a mailing wait in the queue `campaign`, which was paused in time. "
    "Those of customer 4711 must not be sent.",
    _wants_out,
    "`queuepool continue campaign`. Without `--yes` the command says how many jobs it would drop, and asks.",
)
MOVES = Incident(
    "Jobs are in the wrong queue",
    "The mailing holds up what else is in its queue. It is to go on in the queue `slow`, behind everything else.",
    _moves,
    "`queuepool continue campaign`: what is left there goes on. Each job was in one of both queues at any moment.",
)
