"""Rules on a history: reads it once, from beginning to end, so that millions of lines need little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.chaos.alerts import Alerts
from tests.chaos.apart import Apart
from tests.chaos.attempts import Attempts
from tests.chaos.cancels import Cancels
from tests.chaos.counted import Counted
from tests.chaos.deaths import Deaths
from tests.chaos.followed import Followed
from tests.chaos.followers import Followers
from tests.chaos.graphs import Graphs
from tests.chaos.idle_lanes import IdleLanes
from tests.chaos.innocents import Innocents
from tests.chaos.kept import Kept
from tests.chaos.kept_steps import KeptEffects
from tests.chaos.lanes import Lanes
from tests.chaos.lease_kills import LeaseKills
from tests.chaos.ledger import Event, Torn
from tests.chaos.neighbours import Neighbours
from tests.chaos.order import Order
from tests.chaos.outcomes import Outcomes
from tests.chaos.outside import Outside
from tests.chaos.pace import Pace
from tests.chaos.places import Places
from tests.chaos.refused import Refused
from tests.chaos.soft_timeouts import SoftTimeouts
from tests.chaos.suspects import Suspects
from tests.chaos.tables import INVOKED, OK, Jobs
from tests.chaos.ticks import Ticks
from tests.chaos.times import Times
from tests.chaos.traced import Traced
from tests.chaos.windows import Windows

VALID, INVALID, UNKNOWN = 0, 1, 2


@dataclass(slots=True)
class Findings:
    """What is against the promises, by rule, with the first of each; what hides the truth; and what was counted."""

    violations: dict[str, list[str]] = field(default_factory=dict)
    #: violations only where the machine is not crowded, however that rule is broken otherwise
    late: dict[str, list[str]] = field(default_factory=dict)
    #: what may be the machine's fault: it is among the unknown too
    doubted: dict[str, list[str]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    spreads: dict[str, list[float]] = field(default_factory=dict)

    def violated(self, rule: str, what: str) -> None:
        self.violations.setdefault(rule, []).append(what)

    def count(self, what: str, more: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + more

    def excused(self, what: str, case: str) -> None:
        """Counted, with the first cases as examples."""
        self.count(what)
        self.examples.setdefault(what, []).append(case)

    def measured(self, what: str, seconds: float) -> None:
        self.spreads.setdefault(what, []).append(seconds)

    @property
    def code(self) -> int:
        """Unknown is never green; what is known to be wrong stays wrong."""
        return INVALID if self.violations else UNKNOWN if self.unknown else VALID


def check(history: Iterable[Event | Torn]) -> Findings:
    """The ruling on one run."""
    findings, jobs, windows = Findings(), Jobs(), Windows()
    order, outside = Order(findings), Outside(findings)
    times = Times(findings, windows)
    attempts = Attempts(findings, jobs, windows, times)
    outcomes = Outcomes(findings, jobs)
    followers, followed = Followers(findings, jobs), Followed(findings, jobs)
    soft, counted = SoftTimeouts(findings, windows), Counted(findings)
    traced, alerts, pace = Traced(findings, windows), Alerts(findings, windows), Pace(findings)
    lanes, neighbours, idle = Lanes(findings, windows), Neighbours(findings, windows), IdleLanes(findings, windows)
    beside = lanes, neighbours, idle, Suspects(findings, windows)
    kept, refused = Kept(findings, jobs, windows), Refused(findings, windows)
    steps, places = KeptEffects(findings, windows), Places(findings, windows)
    leases = LeaseKills(findings, windows)
    listeners: dict[str, list[Callable[[Event], None]]] = {}
    for part in (
        windows,
        times,
        order,
        attempts,
        outcomes,
        followers,
        followed,
        outside,
        Apart(findings),
        Graphs(findings),
        Innocents(findings),
        Deaths(findings),
        Cancels(findings),
        Ticks(findings),
        soft,
        counted,
        traced,
        alerts,
        pace,
        *beside,
        kept,
        refused,
        steps,
        places,
        leases,
    ):
        for what in part.EVENTS:
            listeners.setdefault(what, []).append(part.read)
    _read(history, listeners, findings, jobs)
    parts = order, attempts, outcomes, followers, followed, times, soft, outside, counted, traced, alerts
    for part in (*parts, *beside, places, leases, pace, kept, refused, steps):
        part.rule()
    return findings


def _read(
    history: Iterable[Event | Torn], listeners: dict[str, list[Callable[[Event], None]]], findings: Findings, jobs: Jobs
) -> None:
    torn, last = 0, None
    for event in history:
        last = event
        if isinstance(event, Torn):
            torn += 1
            continue
        if event["f"].startswith("enq_"):
            _enqueued(event, jobs, findings)
        for read in listeners.get(event["f"], ()):
            read(event)
    # Whoever is killed in the middle of a write leaves half a line, once in a great many kills; more is no accident.
    findings.count("torn lines", torn)
    if torn > 1 + findings.counts.get("kills", 0) / 100:
        findings.unknown.append(f"{torn} lines of the ledger cannot be read")
    if not findings.counts.get("starts"):
        findings.unknown.append("no job was ever started")
    if last is None or isinstance(last, Torn) or last["f"] != "end":
        findings.unknown.append("the ledger has no end")
    elif last["left"]:
        findings.unknown.append(f"{last['left']} jobs were still to be done at the end")


def _enqueued(event: Event, jobs: Jobs, findings: Findings) -> None:
    stream, flag = jobs.stream(event["p"]), {"enq_inv": INVOKED, "enq_ok": OK}.get(event["f"])
    for number in range(event["lo"], event["hi"] + 1):
        if flag:
            stream.mark(number, flag)
            stream.pushed[number] = event["t"]
    if flag == OK:
        findings.count("jobs", event["hi"] - event["lo"] + 1)
