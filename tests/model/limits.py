"""Limits as steps, for the search of every interleaving: who enters, leaves, is parked, handed a place, lost, or swept.

A small world: three jobs of two queues, one limit, workers that may die with what they hold. The number may be lowered
and raised once. What is here mirrors ``lua/include/limits.lua``; each fault leaves out one of its rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

JOBS = ("a", "b", "c")
QUEUE_OF = {"a": "high", "b": "high", "c": "low"}


@dataclass(frozen=True, slots=True)
class State:
    """Where each job is: ``ready``, ``hand`` (reserved, not entered), ``runs``, ``parked``, ``lost`` or ``done``."""

    where: tuple[str, ...] = ("ready",) * len(JOBS)
    number: int = 1
    #: the holders, and those for whom a place is kept; ``stale``: of these, those that may be taken over
    held: frozenset[str] = frozenset()
    granted: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()
    #: those that wait, in the order of their turns
    line: tuple[str, ...] = ()
    deaths: int = 0
    changes: int = 0
    #: what has gone wrong
    broken: str = ""

    def at(self, job: str) -> str:
        return self.where[JOBS.index(job)]

    def put(self, job: str, place: str) -> State:
        where = list(self.where)
        where[JOBS.index(job)] = place
        return replace(self, where=tuple(where))

    @property
    def free(self) -> int:
        return self.number - len(self.held) - len(self.granted)


@dataclass(frozen=True, slots=True)
class Rules:
    """The steps; ``without``: the rule that is left out, to show that a law then breaks."""

    without: str = ""
    most_deaths: int = 1
    most_changes: int = 2
    numbers: tuple[int, ...] = field(default=(0, 1, 2))

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """All that may happen next."""
        for job in JOBS:
            yield from self.of_job(state, job)
        for job in sorted(state.granted - state.stale):
            yield f"nobody takes {job} for long", replace(state, stale=state.stale | {job})
        if state.stale or self.has_lost(state):
            yield "sweep", self.sweep(state)
        if state.changes < self.most_changes:
            for number in self.numbers:
                if number != state.number:
                    changed = replace(state, number=number, changes=state.changes + 1)
                    yield f"the number is {number}", self.hand_on(changed)

    def of_job(self, state: State, job: str) -> Iterator[tuple[str, State]]:
        place = state.at(job)
        if place == "ready":
            yield f"reserve {job}", state.put(job, "hand")
        elif place == "hand":
            yield f"enter {job}", self.enter(state, job)
            yield f"give back {job}", state.put(job, "ready")
        elif place == "runs":
            yield f"finish {job}", self.leave(state.put(job, "done"), job)
            yield f"release {job}", self.leave(state.put(job, "ready"), job, fails=True)
            if state.deaths < self.most_deaths:
                dead = replace(state, deaths=state.deaths + 1)
                yield f"the worker of {job} dies", self.leave(dead.put(job, "ready"), job)
                yield f"the host of {job} is lost", dead.put(job, "lost")
        elif place == "lost":
            yield f"the lease of {job} ends", self.ends(state, job)

    def has_lost(self, state: State) -> bool:
        """Whether a place is held by nobody any more."""
        return any(state.at(job) not in ("runs", "lost") for job in state.held)

    def enter(self, state: State, job: str) -> State:
        admitted = self.admits(state, job)
        if self.without == "own grant" and job in state.granted:
            admitted = False
        granted, stale = state.granted - {job}, state.stale - {job}
        if not admitted:
            parked = replace(state, granted=granted, stale=stale, line=(*state.line, job)).put(job, "parked")
            return self.hand_on(parked)
        entered = replace(state, granted=granted, stale=stale)
        if entered.free <= 0 and entered.stale:
            taken_over = min(entered.stale)
            entered = replace(entered, granted=entered.granted - {taken_over}, stale=entered.stale - {taken_over})
        live = {other for other in entered.held if entered.at(other) in ("runs", "lost")}
        if len(live) + 1 > entered.number:
            entered = replace(entered, broken=f"{job} is one too many")
        return replace(entered, held=entered.held | {job}).put(job, "runs")

    def admits(self, state: State, job: str) -> bool:
        if self.without == "a look at the places":
            return True
        if job in state.granted:
            return state.free >= 0 or self.without == "the number for those that were handed a place"
        if state.free > 0:
            return not state.line or self.without == "a look at the line"
        return state.free == 0 and bool(state.stale)

    def leave(self, state: State, job: str, *, fails: bool = False) -> State:
        if self.without == "the end of a place" and fails:
            return state
        left = replace(state, held=state.held - {job})
        return left if self.without == "handing on" else self.hand_on(left)

    def ends(self, state: State, job: str) -> State:
        """The job is ready again; its place is dropped by a sweep, or by who finds none free."""
        if self.without == "the ends of places":
            return state.put(job, "ready")
        return self.leave(state.put(job, "ready"), job)

    def hand_on(self, state: State) -> State:
        while state.free > 0 and state.line:
            job, *rest = state.line
            granted = state.granted | {job}
            state = replace(state, line=tuple(rest), granted=granted).put(job, "ready")
        return state

    def sweep(self, state: State) -> State:
        """Drop what nobody holds, and grants of jobs that wait no more; let another queue have what is not taken."""
        held = frozenset(job for job in state.held if state.at(job) in ("runs", "lost"))
        if self.without == "the ends of places":
            held = state.held
        state = replace(state, held=held)
        for job in sorted(state.stale):
            waits = state.at(job) == "ready"
            others = any(QUEUE_OF[other] != QUEUE_OF[job] for other in state.line)
            if not waits or (others and state.free <= 0):
                state = replace(state, granted=state.granted - {job}, stale=state.stale - {job})
                elsewhere = [other for other in state.line if QUEUE_OF[other] != QUEUE_OF[job]] if waits else []
                state = replace(state, line=(*elsewhere, *(one for one in state.line if one not in elsewhere)))
                state = self.hand_on(state)
        return self.hand_on(state)


def broken_law(state: State) -> str:
    """The law that does not hold; empty if all do."""
    if state.broken:
        return state.broken
    if state.free > 0 and state.line:
        return "a place is at rest while somebody waits"
    parked = sorted(job for job in JOBS if state.at(job) == "parked")
    if parked != sorted(state.line):
        return "who is parked is not who waits in the line"
    return ""


def is_over(state: State) -> bool:
    """Whether all jobs are done, and nothing is left behind."""
    return all(place == "done" for place in state.where)
