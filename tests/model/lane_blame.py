"""A worker with two lanes, an event loop, a clock and an alarm: what its jobs can do to it, and who answers for that.

Source: ``steward/culprits.py`` and ``settlement/verdict.py``, which rule on each end here, and what a worker with lanes
writes on its board. The world knows what each job did; the ruling knows only the words on the board, and the tallies. A
steward writes its ruling on the board, then settles lane by lane, and may die in between. A tick is a second, half of
the grace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from queuepool.board.held_jobs import Stage
from queuepool.errors import WorkerDied
from queuepool.payload.lease import Tallies
from queuepool.settlement.verdict import Fail, Policy, judge, judge_suspect, may_start, needs_tallies
from queuepool.steward.culprits import Cause, Charge, CrashedIn, Culprits, Evidence, LaneAtDeath, culprits_of

Next = Iterator[tuple[str, "World"]]
NONE = -1
RAISED, DIED = ValueError("told to"), WorkerDied("signal 9")
#: ticks until a job's deadline, and until the alarm after it
TIMEOUT, GRACE = 2, 2
#: what can end a worker
CRASHES = ("crashes in its step", "exits in its step")
THREADS = ("crashes in its thread", "exits in its thread", "holds the interpreter's lock")
UNPROVEN = ("crashes in a callback", "uses up the memory")
#: of a death: a job's, and what the board says proves whose; a job's, or somebody else's; no job's
PROVEN, UNKNOWN, OWN = "proven", "unknown", "its own"


class Rules(NamedTuple):
    """What a worker writes and does; and how much may go wrong."""

    #: the loop notes since when before it notes which lane has the CPU
    since_first: bool = True
    #: it notes that a step has ended
    resets: bool = True
    #: the alarm is set anew when the job ends for which it was set
    rearms: bool = True
    #: the board says for how long the loop was free since it told a job to end, not since when it was told
    counts_free: bool = True
    #: the main thread that watches the loop needs the interpreter's lock as well
    needs_lock: bool = True
    #: a suspect waits in its lane while another one runs
    alone: bool = True
    #: an attempt that ended under suspicion uses up no try
    forgives: bool = True
    #: a steward carries out what the one before it has ruled
    keeps_rulings: bool = True
    culprits: Callable[[Evidence], Culprits] = culprits_of
    #: how often a job may fail by itself; 0 = it never does
    tries: int = 0
    max_crashes: int = 2
    jobs: int = 2
    deaths: int = 1
    #: kills from outside; hangs and failures of the worker's own main thread; deaths of stewards
    kills: int = 0
    hangs: int = 0
    stewards: int = 0
    timed: bool = False
    can: Collection[str] = ()

    @property
    def policy(self) -> Policy:
        return Policy(tries=self.tries, max_crashes=self.max_crashes)

    def tallies(self, job: Job) -> Tallies:
        return Tallies(crashes=job.crashes, suspects=job.suspicions if self.forgives else 0)

    def first(self) -> World:
        return World((Job(),) * self.jobs, self.deaths, self.kills, self.hangs, self.stewards)


class Job(NamedTuple):
    """A job in its store, with its attempts and tallies, and in truth: how often it raised, and killed its worker."""

    #: ready, running, done, failed
    place: str = "ready"
    attempts: int = 0
    crashes: int = 0
    suspicions: int = 0
    raised: int = 0
    killed: int = 0


class Lane(NamedTuple):
    """A lane; ``job`` = ``NONE``: it is free. ``waits``: it holds a suspect that may not begin."""

    job: int = NONE
    waits: bool = False
    has_thread: bool = False
    deadline: int = 0
    #: ticks since it was told to end, as the board says; ``NONE``: it was not
    told_for: int = NONE
    swallows: bool = False
    #: the truth: it has done what ends workers, or kept the loop from ending others
    is_guilty: bool = False


class Grave(NamedTuple):
    """A dead worker that is being settled; ``fault``: whose death it was, in truth."""

    cause: Cause
    fault: str
    crashed_in: CrashedIn
    #: on the board: the ruling, as of ``Culprits.numbers``; ``None``: there is none
    ruling: tuple[tuple[int, int], ...] | None = None
    #: the lanes that are settled, and by what ruling; 0 = as not begun
    settled: tuple[tuple[int, int], ...] = ()


class World(NamedTuple):
    """``cpu`` is the lane whose step runs, ``lock`` the one whose thread holds the interpreter's lock."""

    jobs: tuple[Job, ...]
    deaths: int
    kills: int
    hangs: int
    stewards: int
    lanes: tuple[Lane, ...] = (Lane(), Lane())
    cpu: int = NONE
    lock: int = NONE
    #: on the board: the lane that has the CPU, and the ticks since it has
    on_cpu: int = NONE
    busy: int = 0
    #: ticks for which the main thread was seen to go on meanwhile
    watched: int = 0
    #: ticks until the alarm; ``None``: it is not set
    alarm: int | None = None
    grave: Grave | None = None
    wrongs: frozenset[str] = frozenset()

    @property
    def is_free(self) -> bool:
        """Whether the loop can go on to the next thing."""
        return self.cpu == NONE and self.lock == NONE

    @property
    def running(self) -> dict[int, Lane]:
        return {number: lane for number, lane in enumerate(self.lanes) if lane.job != NONE and not lane.waits}

    def lane(self, number: int, **changes: object) -> World:
        lanes = list(self.lanes)
        lanes[number] = lanes[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(lanes=tuple(lanes))

    def job(self, number: int, **changes: object) -> World:
        jobs = list(self.jobs)
        jobs[number] = jobs[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(jobs=tuple(jobs))

    def wrong(self, what: str, if_so: bool) -> World:
        return self._replace(wrongs=self.wrongs | {what}) if if_so else self


def steps(rules: Rules, world: World) -> Next:
    """The loop tells a job to end as soon as it is free; nothing else is so urgent but the alarm."""
    if world.grave:
        yield from _burying(rules, world, world.grave)
        return
    if world.alarm == 0 and world.deaths:
        yield "alarm", _killed_by_the_alarm(rules, world._replace(deaths=world.deaths - 1))
    if world.is_free and (due := [number for number, lane in world.running.items() if _is_to_be_told(rules, lane)]):
        yield f"l{due[0]} is told to end", world.lane(due[0], told_for=0, swallows=world.lanes[due[0]].has_thread)
        return
    if rules.timed and _may_wait(world):
        yield "tick", _later(rules, world)
    for number, lane in enumerate(world.lanes):
        for label, following in _of_a_lane(rules, world, number, lane):
            yield f"l{number} {label}", following
    if world.kills and world.running:
        yield "killed from outside", _dies(rules, world._replace(kills=world.kills - 1), Cause.KILLED)
    if world.hangs and world.running:
        yield "its main thread hangs", _dies(rules, world._replace(hangs=world.hangs - 1), Cause.STALL, fault=OWN)
        yield "its main thread fails", _dies(rules, world._replace(hangs=world.hangs - 1), Cause.FAILURE, fault=OWN)


def _is_to_be_told(rules: Rules, lane: Lane) -> bool:
    return rules.timed and lane.deadline <= 0 and lane.told_for == NONE


def _may_wait(world: World) -> bool:
    """Whether the clock may move: what was told to end and obeys does so at once, if the loop is free."""
    obeys = any(lane.told_for != NONE and not lane.swallows for lane in world.running.values())
    return world.alarm is not None and world.alarm > 0 and not (world.is_free and obeys)


def _later(rules: Rules, world: World) -> World:
    assert world.alarm is not None
    lanes = tuple(_later_lane(rules, world, number, lane) for number, lane in enumerate(world.lanes))
    busy = min(world.busy + 1, GRACE) if world.on_cpu != NONE else 0
    is_seen = world.on_cpu != NONE and (world.lock == NONE or not rules.needs_lock)
    watched = min(world.watched + is_seen, GRACE)
    return world._replace(lanes=lanes, alarm=world.alarm - 1, busy=busy, watched=watched)


def _later_lane(rules: Rules, world: World, number: int, lane: Lane) -> Lane:
    if lane.job == NONE or lane.waits:
        return lane
    told_for = lane.told_for
    if told_for != NONE and (world.is_free or not rules.counts_free):
        told_for = min(told_for + 1, GRACE)
    keeps_the_loop = number in (world.cpu, world.lock) and world.lock in (NONE, number)
    is_guilty = lane.is_guilty or keeps_the_loop or (lane.swallows and world.is_free)
    return lane._replace(deadline=max(lane.deadline - 1, -GRACE), told_for=told_for, is_guilty=is_guilty)


def _of_a_lane(rules: Rules, world: World, number: int, lane: Lane) -> Next:
    if lane.job == NONE:
        yield from _reserving(rules, world, number)
    elif lane.waits:
        if world.is_free and not _has_a_suspect(rules, world):
            yield "begins", _begins(rules, world, number)
    elif world.cpu == number and world.lock == NONE:
        yield from _in_a_step(rules, world, number, lane)
    elif world.is_free and not lane.has_thread:
        # Before the time is noted, that of an earlier step is there.
        busy = 0 if rules.since_first else GRACE
        yield "has the CPU", world._replace(cpu=number, on_cpu=number, busy=busy, watched=0)
    elif world.is_free:
        yield "ends", _ends(rules, world, number)
    if lane.job != NONE and not lane.waits:
        yield from _dying(rules, world, number, lane)


def _reserving(rules: Rules, world: World, number: int) -> Next:
    """A lane takes any job: which one comes next is another world's affair. Of two free lanes the first."""
    if not world.is_free or number != next(place for place, lane in enumerate(world.lanes) if lane.job == NONE):
        return
    for job, stored in enumerate(world.jobs):
        if stored.place != "ready":
            continue
        taken = world.job(job, place="running", attempts=stored.attempts + 1)
        must_wait = stored.suspicions > 0 and _has_a_suspect(rules, world)
        for has_thread in (False, True) if set(THREADS) & set(rules.can) else (False,):
            held = taken.lane(number, job=job, has_thread=has_thread, waits=must_wait)
            name = f"takes {job}" + " in a thread" * has_thread
            yield name, held if must_wait else _begins(rules, held, number)


def _has_a_suspect(rules: Rules, world: World) -> bool:
    return rules.alone and any(world.jobs[lane.job].suspicions for lane in world.running.values())


def _begins(rules: Rules, world: World, number: int) -> World:
    world = world.lane(number, waits=False, deadline=TIMEOUT if rules.timed else 0)
    is_beside = sum(world.jobs[lane.job].suspicions > 0 for lane in world.running.values()) > 1
    world = world.wrong("two suspects", is_beside)
    job = world.jobs[world.lanes[number].job]
    refusal = may_start("job", job.attempts, rules.policy, 0.0, rules.tallies(job).suspects)
    world = world.wrong("other tries than its own", refusal is not None)
    return _armed(world) if rules.timed and world.alarm is None else world


def _armed(world: World) -> World:
    """The alarm at the earliest deadline and its grace."""
    return world._replace(alarm=min((lane.deadline + GRACE for lane in world.running.values()), default=None))


def _in_a_step(rules: Rules, world: World, number: int, lane: Lane) -> Next:
    """It yields, ends, or keeps the CPU: then only the clock moves. Who was told to end hears of it here."""
    if not rules.since_first:
        yield "notes since when", world._replace(busy=0)
    over = world._replace(cpu=NONE, **({"on_cpu": NONE, "busy": 0, "watched": 0} if rules.resets else {}))
    yield "ends", _ends(rules, over, number)
    if rules.tries:
        yield "raises", _raises(rules, over, number)
    if lane.told_for == NONE or lane.swallows:
        yield "yields", over
    else:
        yield "swallows it", over.lane(number, swallows=True)


def _raises(rules: Rules, world: World, number: int) -> World:
    index = world.lanes[number].job
    job = world.jobs[index]
    known = rules.tallies(job) if needs_tallies(job.attempts, rules.policy) else Tallies()
    is_last = isinstance(judge(RAISED, job.attempts, rules.policy, known, 0.0), Fail)
    raised = _ends(rules, world, number).job(index, place="failed" if is_last else "ready", raised=job.raised + 1)
    return raised.wrong("other tries than its own", is_last != (job.raised + 1 == rules.tries))


def _ends(rules: Rules, world: World, number: int) -> World:
    """Done, or ruled late by its worker, which is another end of the same kind here."""
    free = world.job(world.lanes[number].job, place="done")
    lanes = list(free.lanes)
    lanes[number] = Lane()
    free = free._replace(lanes=tuple(lanes))
    if free.alarm is None or (not rules.rearms and free.running):
        return free
    return _armed(free)


def _dying(rules: Rules, world: World, number: int, lane: Lane) -> Next:
    if not world.deaths:
        return
    fewer = world._replace(deaths=world.deaths - 1)
    can, others = set(rules.can), [one for place, one in world.running.items() if one.has_thread and place != number]
    if world.cpu == number and world.lock == NONE:
        if "crashes in its step" in can:
            yield "crashes", _dies(rules, fewer, Cause.FAULT, number, CrashedIn.LOOP, fault=PROVEN)
        if "exits in its step" in can:
            yield "exits", _dies(rules, fewer, Cause.FAULT, number, fault=UNKNOWN if others else PROVEN)
    if lane.has_thread and world.lock in (NONE, number):
        yield from _dying_of_a_thread(rules, world, fewer, number)
    if world.is_free and "crashes in a callback" in can:
        yield "crashes in a callback", _dies(rules, fewer, Cause.FAULT, number, CrashedIn.LOOP)
    if "uses up the memory" in can:
        yield "uses up the memory", _dies(rules, fewer, Cause.KILLED, number)


def _dying_of_a_thread(rules: Rules, world: World, fewer: World, number: int) -> Next:
    if "crashes in its thread" in rules.can:
        yield "crashes in its thread", _dies(rules, fewer, Cause.FAULT, number, CrashedIn.OTHER)
    if "exits in its thread" in rules.can:
        yield "exits in its thread", _dies(rules, fewer, Cause.FAULT, number)
    if rules.timed and "holds the interpreter's lock" in rules.can:
        yield "takes or leaves the lock", world._replace(lock=number if world.lock == NONE else NONE)


def _killed_by_the_alarm(rules: Rules, world: World) -> World:
    """Proven is who was told on a free loop, or keeps the CPU for half of the grace: seen, or beside no thread."""
    running = world.running
    late = any(lane.deadline <= -GRACE for lane in running.values())
    has_thread = any(lane.has_thread for lane in running.values())
    seen = world.watched >= 1 or (world.lock == NONE and not has_thread)
    blocked = world.cpu != NONE and world.busy >= 1 and seen
    told = any(lane.is_guilty and lane.swallows and lane.told_for >= 1 for lane in running.values())
    dead = _dies(rules, world, Cause.DEADLINE, fault=PROVEN if blocked or told else UNKNOWN)
    return dead.wrong("an alarm for nobody", not late)


def _dies(
    rules: Rules,
    world: World,
    cause: Cause,
    culprit: int = NONE,
    crashed_in: CrashedIn = CrashedIn.UNKNOWN,
    *,
    fault: str = UNKNOWN,
) -> World:
    """The worker dies; if its steward does not, that settles all that it held at once, and a new worker begins."""
    if culprit != NONE:
        job = world.lanes[culprit].job
        world = world.lane(culprit, is_guilty=True).job(job, killed=world.jobs[job].killed + 1)
    world = world._replace(grave=Grave(cause, fault, crashed_in))
    while world.grave and not world.stewards:
        world = next(following for _, following in _burying(rules, world, world.grave))
    return world


def _burying(rules: Rules, world: World, grave: Grave) -> Next:
    """What the steward does next; or it dies, and its successor has but the board."""
    settled = dict(grave.settled)
    left = [number for number, lane in enumerate(world.lanes) if lane.job != NONE and number not in settled]
    if grave.ruling is None and left:
        found = rules.culprits(_evidence(world, grave, left))
        yield "the steward rules", world._replace(grave=grave._replace(ruling=tuple(sorted(found.numbers.items()))))
    for number in left if grave.ruling is not None else ():
        yield f"the steward settles l{number}", _settled(rules, world, grave, number)
    if not left:
        yield "a new worker begins", _anew(world, grave)
    if world.stewards:
        ruling = grave.ruling if rules.keeps_rulings else None
        fewer = world._replace(stewards=world.stewards - 1, grave=grave._replace(ruling=ruling))
        yield "the steward dies", fewer


def _evidence(world: World, grave: Grave, left: list[int]) -> Evidence:
    """What the board says of the lanes that are not settled; now is 10.0."""
    lanes = [
        LaneAtDeath(
            number,
            Stage.RESERVED if lane.waits else Stage.RUNNING,
            10.0 + lane.deadline,
            None if lane.told_for == NONE else float(lane.told_for),
            lane.has_thread,
            world.jobs[lane.job].suspicions > 0,
        )
        for number, lane in enumerate(world.lanes)
        if number in left
    ]
    return Evidence(
        grave.cause,
        lanes,
        at=10.0,
        grace=float(GRACE),
        on_cpu=None if world.on_cpu == NONE else world.on_cpu,
        since=10.0 - world.busy,
        watched=float(world.watched) if grave.cause == Cause.DEADLINE else 0.0,
        silence=2.0 * GRACE,
        crashed_in=grave.crashed_in,
    )


def _anew(world: World, grave: Grave) -> World:
    """All is settled."""
    done = Culprits.of({number: ruling for number, ruling in grave.settled if ruling})
    world = _judged(world, done, grave.fault)
    return world._replace(
        lanes=(Lane(), Lane()), cpu=NONE, lock=NONE, on_cpu=NONE, busy=0, watched=0, alarm=None, grave=None
    )


def _judged(world: World, found: Culprits, fault: str) -> World:
    """What became of the jobs beside the truth."""
    guilty = {number for number, lane in world.running.items() if lane.is_guilty}
    by_proof = {number for number, charge in found.charged.items() if charge != Charge.SUSPECTED}
    answers = by_proof | set(found.suspects) | set(found.charged)
    touched = (set(found.suspects) | set(found.charged)) - guilty
    world = world.wrong("an innocent was charged", bool(by_proof - guilty))
    world = world.wrong("an innocent has another record", fault != UNKNOWN and bool(touched))
    if fault == OWN:
        return world
    world = world.wrong("the guilty went free", fault == PROVEN and not by_proof & guilty)
    return world.wrong("the guilty is held for innocent", bool(guilty) and not answers & guilty)


def _settled(rules: Rules, world: World, grave: Grave, lane: int) -> World:
    ruling = dict(grave.ruling or ())
    ruled = grave._replace(settled=tuple(sorted((*grave.settled, (lane, ruling.get(lane, 0))))))
    return _carried_out(rules, world._replace(grave=ruled), world.lanes[lane].job, Culprits.of(ruling), lane)


def _carried_out(rules: Rules, world: World, job: int, found: Culprits, lane: int) -> World:
    stored = world.jobs[job]
    charge = found.charged.get(lane)
    if charge == Charge.LATE:  # ruled like any other timeout
        return world.job(job, place="ready")
    if charge is not None:
        is_last = isinstance(judge(DIED, stored.attempts, rules.policy, rules.tallies(stored), 0.0), Fail)
        world = world.wrong("other deaths than its own", is_last != (stored.crashes + 1 >= rules.max_crashes))
        return world.job(job, place="failed" if is_last else "ready", crashes=stored.crashes + 1)
    if lane in found.suspects:
        is_last = isinstance(judge_suspect(DIED, stored.attempts, rules.policy, 0.0), Fail)
        return world.job(job, place="failed" if is_last else "ready", suspicions=stored.suspicions + 1)
    return world.job(job, place="ready", attempts=stored.attempts - 1)


# What is promised


def an_innocent_is_not_charged(world: World) -> bool:
    """But for the one suspect of a death of which nothing is proven."""
    return "an innocent was charged" not in world.wrongs


def an_innocent_has_the_record_that_it_had(world: World) -> bool:
    """Its attempts and its tallies, wherever something is proven, and where the worker hung by itself."""
    return "an innocent has another record" not in world.wrongs


def who_is_caught_is_charged(world: World) -> bool:
    """Who has the CPU when it crashes or for half of the grace; who swallows; whose thread crashes."""
    return "the guilty went free" not in world.wrongs


def who_did_it_is_never_held_for_innocent(world: World) -> bool:
    return "the guilty is held for innocent" not in world.wrongs


def an_alarm_ends_who_is_late(world: World) -> bool:
    return "an alarm for nobody" not in world.wrongs


def a_job_is_suspected_once(world: World) -> bool:
    """From then on it is the one suspect."""
    return all(job.suspicions <= 1 for job in world.jobs)


def one_suspect_runs_at_a_time(world: World) -> bool:
    return "two suspects" not in world.wrongs


def a_job_has_all_its_tries(world: World) -> bool:
    return "other tries than its own" not in world.wrongs


def a_job_fails_of_deaths_with_which_it_was_charged(world: World) -> bool:
    """And of as many as it may: a suspicion is none of them."""
    return "other deaths than its own" not in world.wrongs


LAWS = [
    an_innocent_is_not_charged,
    an_innocent_has_the_record_that_it_had,
    who_is_caught_is_charged,
    who_did_it_is_never_held_for_innocent,
    an_alarm_ends_who_is_late,
    a_job_is_suspected_once,
    one_suspect_runs_at_a_time,
    a_job_has_all_its_tries,
    a_job_fails_of_deaths_with_which_it_was_charged,
]


def kills_are_few(most: int) -> Callable[[World], bool]:
    """The law that a job ends no more workers than so many; then it has failed."""

    def who_kills_ends_failed(world: World) -> bool:
        return all(job.killed <= most for job in world.jobs)

    return who_kills_ends_failed
