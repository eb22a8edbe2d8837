"""A model of flows: members that end, end again, are lost, resumed and cancelled in any order.

A diamond, ``a`` before ``b`` and ``c`` and both before ``d``; ``n`` follows ``b`` if it fails, ``e`` both in any
case. ``b`` may add ``x`` when it is done: those that follow ``b`` follow that as well. Each step is one script or
transaction of the store, unless a planted fault makes two of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

#: by member: those that it follows, and its rule
GRAPH: dict[str, tuple[str, str]] = {
    "a": ("", "s"), "b": ("a", "s"), "c": ("a", "s"), "d": ("bc", "s"), "n": ("b", "f"), "e": ("bc", "a"),
    "x": ("", "s"),
}  # fmt: skip
MEMBERS = "".join(GRAPH)
#: the member that is not there at first, and who adds it
CHILD, PARENT = "x", "b"


@dataclass(frozen=True, slots=True)
class FlowRules:
    """What the store does; each that is false is a planted fault."""

    #: an end counts only under its lease
    fences: bool = True
    #: an end counts only for a member that runs
    guards: bool = True
    #: what is ready while the flow is stopped starts when it is resumed
    holds: bool = True
    #: the first end alone counts for the rules f and a
    spends: bool = True
    #: a retry makes the member run in the step that puts its job back
    resumes_at_once: bool = True
    #: those that follow a member wait for what it adds
    waits: bool = True
    #: what a member adds is written in the step that ends it
    adds_at_the_end: bool = True
    #: a failure keeps the rest from starting
    stops: bool = True


class FlowWorld(NamedTuple):
    """The store, and what may still happen. The first texts have a letter for each member, as ordered in ``GRAPH``."""

    letters: str = "r" + "w" * (len(GRAPH) - 2) + "-"
    #: "1": its edges of the rules f and a were counted
    spent: str = "0" * len(GRAPH)
    #: how many of those that it follows are not over, and how many have failed or were cancelled
    open: str = "".join(str(len(before)) for before, _ in GRAPH.values())
    bad: str = "0" * len(GRAPH)
    #: "-" no job, "r" ready, "l" leased
    jobs: str = "r" + "-" * (len(GRAPH) - 1)
    #: members whose former lease a worker still believes in
    stale: str = ""
    held: str = ""
    failed: str = ""
    #: that were put back, but do not run yet: only a planted fault has these
    half: str = ""
    state: str = "running"
    #: steps that are still allowed: lost leases, failures, retries, cancellations
    losses: int = 1
    failures: int = 1
    retries: int = 1
    cancels: int = 1
    #: what was against the laws in a step
    wrong: str = ""

    def at(self, name: str, field: str) -> str:
        """The letter of this member in a field."""
        return str(getattr(self, field))[MEMBERS.index(name)]

    def put(self, name: str, **letters: str) -> FlowWorld:
        """The same with other letters for this member."""
        place = MEMBERS.index(name)
        changed = {
            field: (text := getattr(self, field))[:place] + one + text[place + 1 :] for field, one in letters.items()
        }
        return self._replace(**changed)


def steps(rules: FlowRules, world: FlowWorld) -> Iterator[tuple[str, FlowWorld]]:
    """All that may happen next."""
    for name in MEMBERS:
        job = world.at(name, "jobs")
        if job == "r":
            yield f"{name} reserved", world.put(name, jobs="l")
        if job == "l":
            yield from _ends(rules, world, name)
            if world.losses:
                yield (
                    f"{name} lost",
                    world.put(name, jobs="r")._replace(losses=world.losses - 1, stale=world.stale + name),
                )
    for name in world.stale:
        rest = world._replace(stale=world.stale.replace(name, "", 1))
        # Refused, unless nothing fences it; the worker that has the job now goes on.
        yield f"{name} ended late", rest if rules.fences else settle(rules, rest, name, "d")
    for name in world.half:
        yield f"{name} resumed", resume(rules, world._replace(half=world.half.replace(name, "", 1)), name)
    if world.retries:
        for name in world.failed:
            yield f"{name} retried", retry(rules, world, name)
    if world.cancels and world.state == "running":
        yield "cancelled", over(world._replace(state="cancelled", cancels=0))


def _ends(rules: FlowRules, world: FlowWorld, name: str) -> Iterator[tuple[str, FlowWorld]]:
    gone = world.put(name, jobs="-")
    yield f"{name} done", settle(rules, gone, name, "d")
    if name == PARENT:
        yield f"{name} done, adding {CHILD}", settle(rules, gone, name, "d", adds=True)
    if name == PARENT and not rules.adds_at_the_end and world.losses:
        lost = world.put(name, jobs="r")._replace(losses=world.losses - 1)
        yield f"{name} lost, having added {CHILD}", over(add(rules, lost))
    # The reply is lost, so that the end is sent again.
    again = settle(rules, gone, name, "d")
    if not (rules.fences and rules.guards) and world.losses:
        yield f"{name} done twice", settle(rules, again._replace(losses=world.losses - 1), name, "d")
    if world.failures:
        failing = gone._replace(failures=world.failures - 1, failed="".join(sorted(gone.failed + name)))
        yield f"{name} failed", settle(rules, failing, name, "f")


def settle(rules: FlowRules, world: FlowWorld, name: str, how: str, *, adds: bool = False) -> FlowWorld:
    """The member has ended: one step."""
    if world.at(name, "letters") != "r" and rules.guards:
        return over(world)
    was_spent = world.at(name, "spent") == "1"
    world = world.put(name, letters=how, spent="1")
    if how == "f" and world.state == "running" and rules.stops:
        world = world._replace(state="failing")
    if adds:
        world = add(rules, world)
    return over(_follow(rules, world, name, how, was_spent))


def add(rules: FlowRules, world: FlowWorld) -> FlowWorld:
    """Write the child, and start it: those that follow its parent wait for it."""
    for other, (before, _) in GRAPH.items():
        if PARENT in before and rules.waits:
            world = world.put(other, open=str(int(world.at(other, "open")) + 1))
    if world.state == "running":
        return start(world, CHILD)
    return _hold(rules, world, CHILD)


def _hold(rules: FlowRules, world: FlowWorld, name: str) -> FlowWorld:
    held = "".join(sorted(world.held + name)) if rules.holds else world.held
    was_spent = world.at(name, "spent") == "1"
    return _follow(rules, world._replace(held=held).put(name, letters="c", spent="1"), name, "c", was_spent)


def before_of(world: FlowWorld, name: str) -> str:
    """Those that this member follows."""
    before = GRAPH[name][0]
    return before + CHILD if PARENT in before and world.at(CHILD, "letters") != "-" else before


def _follow(rules: FlowRules, world: FlowWorld, name: str, how: str, was_spent: bool) -> FlowWorld:
    for other, (_, rule) in GRAPH.items():
        if name not in before_of(world, other):
            continue
        if rule == "s" and how != "d":
            if world.at(other, "letters") == "w":
                letter = "k" if how == "k" else "c"
                other_spent = world.at(other, "spent") == "1"
                world = _follow(rules, world.put(other, letters=letter, spent="1"), other, letter, other_spent)
            continue
        if rule != "s" and was_spent and rules.spends:
            continue
        bad = int(world.at(other, "bad")) + (rule != "s" and how in "fc")
        left = int(world.at(other, "open")) - 1
        world = world.put(other, open=str(max(left, 0)), bad=str(min(bad, 9)))
        if left <= 0:
            world = _ready(rules, world, other, rule)
    return world


def _ready(rules: FlowRules, world: FlowWorld, name: str, rule: str) -> FlowWorld:
    if world.at(name, "letters") != "w":
        return world
    if rule == "f" and world.at(name, "bad") == "0":
        return _follow(rules, world.put(name, letters="k", spent="1"), name, "k", world.at(name, "spent") == "1")
    if rule == "s" and world.state != "running":
        return _hold(rules, world, name)
    return start(world, name)


def start(world: FlowWorld, name: str) -> FlowWorld:
    """Push the member's job."""
    before, rule = before_of(world, name), GRAPH[name][1]
    letters = {world.at(one, "letters") for one in before}
    wrong = world.wrong
    if rule == "s" and not letters <= {"d"}:
        wrong = f"{name} started before what it follows was done"
    elif rule != "s" and any(world.at(one, "spent") == "0" for one in before):
        wrong = f"{name} started before what it follows had ended"
    if world.at(name, "jobs") != "-":
        wrong = f"{name} was pushed twice"
    return world.put(name, letters="r", jobs="r")._replace(wrong=wrong)


def retry(rules: FlowRules, world: FlowWorld, name: str) -> FlowWorld:
    """Put a failed member back; its record goes."""
    back = world.put(name, jobs="r")._replace(failed=world.failed.replace(name, "", 1), retries=world.retries - 1)
    return resume(rules, back, name) if rules.resumes_at_once else back._replace(half=back.half + name)


def resume(rules: FlowRules, world: FlowWorld, name: str) -> FlowWorld:
    """The flow goes on, with all that was cancelled."""
    if world.at(name, "letters") == "f":
        world = world.put(name, letters="r")
    world = world._replace(state="running", letters=world.letters.replace("c", "w"))
    for one in world.held:
        if world.at(one, "letters") == "w":
            world = start(world, one)
    return world._replace(held="")


def over(world: FlowWorld) -> FlowWorld:
    """End the flow if nothing of it runs."""
    if "r" in world.letters or world.state in ("done", "failed", "over"):
        return world
    if world.state == "cancelled":
        return world._replace(state="over")
    return world._replace(state="failed" if world.state == "failing" or set("fc") & set(world.letters) else "done")


# The laws.


def nothing_starts_too_early_or_twice(world: FlowWorld) -> bool:
    """Whether each member was pushed when it was to be, and once."""
    return not world.wrong


def as_many_jobs_as_members_that_run(world: FlowWorld) -> bool:
    """Whether the jobs are those of the members that run."""
    return all((letter == "r") == (job != "-") for letter, job in zip(world.letters, world.jobs, strict=True))


def a_flow_is_over_when_nothing_runs(world: FlowWorld) -> bool:
    """Whether it has ended, and only then."""
    return (world.state in ("done", "failed", "over")) == ("r" not in world.letters)


def what_is_done_is_whole(world: FlowWorld) -> bool:
    """Whether a flow that is done has left nothing out."""
    return world.state != "done" or set(world.letters) <= {"d", "k", "-"}


LAWS = (
    nothing_starts_too_early_or_twice, as_many_jobs_as_members_that_run, a_flow_is_over_when_nothing_runs,
    what_is_done_is_whole,
)  # fmt: skip
