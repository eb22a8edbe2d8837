"""Movers bring one job to another store, as ``search/transfer.py`` does it: any of them may be killed, or be late.

A call may be answered, be carried out without its answer being heard, or be carried out long after it was given up. A
mover that stands still for long is one whose next step comes late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Next = Iterator[tuple[str, "World"]]
#: ticks of the other store's clock: from the deadline's fixing to it, and those that are looked at
WITHIN, MOST = 2, 4


class Rules(NamedTuple):
    """``fixes_first``: the deadline is fixed before the parcel is read, not before the push."""

    fixes_first: bool = True
    #: whether the other store looks at the deadline
    bounds: bool = True
    #: whether a push of unknown result is refused before the job goes back
    refuses: bool = True
    #: whether a number is forgotten only once the parcel is gone, and the ticks for which it is still known
    forgets_last: bool = True
    still_known: int = WITHIN
    #: whether the number is written down with the push
    marks: bool = True
    #: calls that are lost or come late
    losses: int = 2


class Mover(NamedTuple):
    """``step``: idle, fixed, read, unsure, came, refused or over."""

    step: str = "idle"
    until: int = 0


class World(NamedTuple):
    """One job, and what is known of its number there."""

    #: waits, parcel, gone, or back (on its queue; it would get another number)
    job: str = "waits"
    #: how often it was pushed there
    copies: int = 0
    #: came or refused, '' = nothing; and until which tick it is known, 0 = for good
    mark: str = ""
    known_until: int = 0
    now: int = 0
    movers: tuple[Mover, ...] = (Mover(), Mover())
    #: calls that were given up, and may still be carried out: verb and deadline
    late: frozenset[tuple[str, int]] = frozenset()
    losses: int = 0


def steps(rules: Rules, world: World) -> Next:
    if world.now < MOST:
        yield "time passes", world._replace(now=world.now + 1)
    for call in world.late:
        after, _ = _carried_out(rules, world, *call)
        yield f"a late {call[0]} arrives", after._replace(late=world.late - {call})
    for number, mover in enumerate(world.movers):
        for words, after, then in _of(rules, world, mover):
            movers = (*world.movers[:number], then, *world.movers[number + 1 :])
            yield f"{number} {words}", after._replace(movers=movers)


def _of(rules: Rules, world: World, mover: Mover) -> Iterator[tuple[str, World, Mover]]:
    """What a mover may do next: the world after it, and the mover after it."""
    if mover.step != "idle":
        yield "is killed", world, Mover()
    match mover.step:
        case "idle" if world.job == "waits":
            yield "puts it on its way", world._replace(job="parcel"), mover
        case "idle" if world.job == "parcel":
            yield "fixes a deadline", world, Mover("fixed", world.now + WITHIN)
        case "fixed":
            yield "reads", world, mover._replace(step="read") if world.job == "parcel" else Mover()
        case "read":
            until = mover.until if rules.fixes_first else world.now + WITHIN
            yield from _calls(rules, world, Mover("read", until), "admit")
        case step if verb := _verb_at(rules, step):
            yield from _calls(rules, world, mover, verb)


def _verb_at(rules: Rules, step: str) -> str:
    """What a mover calls next, after its push; empty if it calls nothing."""
    order = ("drop", "forget") if rules.forgets_last else ("forget", "drop")
    verbs = {"unsure": "refuse" if rules.refuses else "send back", "refused": "send back"}
    return {**verbs, "came": order[0], "over": order[1]}.get(step, "")


#: the mover's step after an answer; any other answer ends what it does
_AFTER = {
    ("admit", "came"): "came", ("admit", "refused"): "refused", ("admit", "late"): "unsure",
    ("refuse", "came"): "came", ("refuse", "refused"): "refused", ("drop", "done"): "over",
    ("send back", "done"): "over", ("forget", "done"): "over",
}  # fmt: skip


def _calls(rules: Rules, world: World, mover: Mover, verb: str) -> Iterator[tuple[str, World, Mover]]:
    after, answer = _carried_out(rules, world, verb, mover.until)
    is_last = verb == ("forget" if rules.forgets_last else "drop")
    then = "idle" if is_last else _AFTER.get((verb, answer), "idle")
    yield f"hears of its {verb}: {answer}", after, mover._replace(step=then) if then != "idle" else Mover()
    if world.losses < rules.losses:
        unheard = mover._replace(step="unsure") if verb == "admit" else Mover()
        losses = world.losses + 1
        yield f"does not hear of its {verb}", after._replace(losses=losses), unheard
        late = world.late | {(verb, mover.until)}
        yield f"gives its {verb} up", world._replace(losses=losses, late=late), unheard


def _carried_out(rules: Rules, world: World, verb: str, until: int) -> tuple[World, str]:
    """The world after a call, and the answer."""
    known = world.mark if not world.known_until or world.now < world.known_until else ""
    is_there = world.job == "parcel"
    match verb:
        case "admit" | "refuse" if known:
            return world, known
        case "admit" if rules.bounds and world.now >= until:
            return world, "late"
        case "admit":
            mark = "came" if rules.marks else ""
            return world._replace(copies=world.copies + 1, mark=mark, known_until=0), "came"
        case "refuse":
            return world._replace(mark="refused", known_until=0), "refused"
        case "drop":
            return (world._replace(job="gone"), "done") if is_there else (world, "gone")
        case "send back":
            return (world._replace(job="back"), "done") if is_there else (world, "gone")
    return world._replace(known_until=world.now + rules.still_known if known else world.known_until), "done"


def it_can_be_run_in_one_place_at_most(world: World) -> bool:
    """In its queue here, or there."""
    return world.copies + (world.job in ("waits", "back")) <= 1


def it_is_not_lost(world: World) -> bool:
    """It is gone from here only when it has come."""
    return world.job != "gone" or world.copies > 0


LAWS = (it_can_be_run_in_one_place_at_most, it_is_not_lost)
