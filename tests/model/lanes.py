"""A worker with two lanes: its board, its two clients under one tag, and the steward that settles what it leaves.

One client waits for jobs and takes them, in a thread of its own; the other one does the rest. The worker's loop alone
writes the lanes, one write after another, and may die between any two of them. What it goes by is in ``lane_rules``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model import lane_rules as rule
from tests.model.lane_rules import Told, Write
from tests.model.world import raised

Next = Iterator[tuple[str, "World"]]
TAKER, OTHER = 0, 1
#: what a reply changes, in order
ORDER = ("stage", "hold", "answered", "look")


class Rules(NamedTuple):
    """What they do; and how much may go wrong."""

    #: what a reply changes: what is settled is free, new lanes, no reserve is without a reply; at last a look
    order: tuple[str, ...] = ORDER
    #: the loop heeds a steward that wants back what it has reserved
    looks: bool = True
    #: what a request settles makes room for what it brings
    reuses: bool = True
    #: a lane is free for another job only when the delete of its done one was answered; else when it was sent
    frees_when_answered: bool = True
    #: both clients count for whether a tag is spent
    counts_both: bool = True
    #: a tag is renewed when the last reserve's reply is on the board, or given up; else when it is heard, or at once
    renews: str = "written"
    #: nothing is given back while a reserve may be on its way; else while one is waited for, or at any time
    gives_back: str = "unspent"
    #: the board says whose attempt is about to be counted
    notes_turn: bool = True
    #: a steward puts right what was half counted before it counts itself
    counts_first: bool = True
    jobs: int = 2
    deaths: int = 0
    stewards: int = 0
    losses: int = 0
    #: jobs that a pause gives back before they have begun, and jobs that are released by their worker
    pauses: int = 0
    releases: int = 0
    #: how often its steward takes a loop for stuck
    stalls: int = 0
    most_attempts: int = 2

    def first(self) -> World:
        limits = self.deaths, self.stewards, self.losses, self.pauses, self.releases, self.stalls
        jobs = (Job("ready"), *[Job()] * (self.jobs - 1))
        return World(jobs, (0,) * self.jobs, *limits)


class Job(NamedTuple):
    """In the store."""

    #: absent, ready, reserved, done
    place: str = "absent"
    attempts: int = 0
    tag: int = 0


class Lease(NamedTuple):
    job: int
    attempts: int
    tag: int


NO_LEASE = Lease(-1, 0, 0)


class Lane(NamedTuple):
    """On the board, but for ``knows``: what the worker alone knows of it.

    ``stage``: free, reserved, running, done, settled; ``knows``: new, deleting, to be given back, ruled on.
    """

    stage: str = "free"
    lease: Lease = NO_LEASE
    knows: str = ""


class Call(NamedTuple):
    """A request of either client; ``reply``: what a reserve brought, ``None``: it was not carried out yet."""

    verb: str
    tag: int
    leases: tuple[Lease, ...] = ()
    room: int = 0
    lanes: tuple[int, ...] = ()
    reply: tuple[Lease, ...] | None = None
    is_refused: bool = False


class World(NamedTuple):
    jobs: tuple[Job, ...]
    #: attempts that have begun and were not given back
    starts: tuple[int, ...]
    deaths: int
    stewards: int
    losses: int
    pauses: int
    releases: int
    stalls: int
    lanes: tuple[Lane, Lane] = (Lane(), Lane())
    tag: int = 1
    retired: int = 0
    calls: tuple[Call | None, Call | None] = (None, None)
    late: tuple[Call, ...] = ()
    #: whether a verb of either client was not answered since the tag was drawn
    unanswered: tuple[int, int] = (0, 0)
    #: whether the board says that a reserve has no reply
    is_asking: bool = False
    is_renewing: bool = False
    writes: tuple[Write, ...] = ()
    is_dead: bool = False
    #: of the steward at a dead worker: counts, retires, reclaims, settles
    burying: str = ""
    #: of the steward at a living worker: looked, said, sure, retired; the tag and the leases that it saw, and whether
    #: another request was sent since
    taking: str = ""
    seen: tuple[int, tuple[Lease, ...]] = (0, ())
    is_another: bool = False
    #: whether the mark on the board means the present request
    is_wanted_back: bool = False
    #: attempts that were begun and not ended, as counted; and the lane whose turn it is
    open: int = 0
    turn: int = -1
    #: counted begins beyond the true ones
    uncounted: int = 0
    finished: frozenset[int] = frozenset()
    wrongs: frozenset[str] = frozenset()

    @property
    def is_at_rest(self) -> bool:
        return not self.writes and not self.is_dead

    @property
    def running(self) -> int:
        return sum(lane.stage == "running" for lane in self.lanes)

    def lane(self, number: int, **changes: object) -> World:
        lanes = list(self.lanes)
        lanes[number] = lanes[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(lanes=(lanes[0], lanes[1]))

    def job(self, number: int, job: Job) -> World:
        return self._replace(jobs=(*self.jobs[:number], job, *self.jobs[number + 1 :]))

    def call(self, client: int, call: Call | None) -> World:
        return self._replace(calls=(call, self.calls[1]) if client == TAKER else (self.calls[0], call))

    def owns(self, lease: Lease) -> bool:
        return self.jobs[lease.job] == Job("reserved", lease.attempts, lease.tag)

    def told(self, rules: Rules) -> Told:
        is_unwritten = any(write.what == "answered" for write in self.writes)
        gives_back = any(lane.knows == "to be given back" for lane in self.lanes)
        counted = self.unanswered if rules.counts_both else self.unanswered[:1]
        is_reserving = self.calls[TAKER] is not None or is_unwritten
        return Told(is_reserving, gives_back, (0,) * len(counted), counted)


def steps(rules: Rules, world: World) -> Next:
    absent = [number for number, job in enumerate(world.jobs) if job.place == "absent"]
    if absent:
        yield "a job is pushed", world.job(absent[0], Job("ready"))
    for client, call in enumerate(world.calls):
        if call:
            yield from _of_a_call(rules, world, client, call)
    for number, call in enumerate(world.late):
        left = world.late[:number] + world.late[number + 1 :]
        yield f"a late {call.verb} arrives", _carried_out(rules, world._replace(late=left), call)[0]
    if world.taking or (world.stalls and world.is_asking and not world.is_dead):
        yield from _taking_back(world)
    if world.is_dead:
        yield from _of_the_steward(rules, world) if not world.taking else ()
        return
    if world.deaths:
        yield "dies", _dies(world)
    if world.writes:
        yield f"writes {world.writes[0].what}", _written(rules, world)
    yield from _of_the_clients(rules, world)
    for number, lane in enumerate(world.lanes) if not world.writes else ():
        yield from _of_a_lane(rules, world, number, lane)


# The store, and the way to it


def _of_a_call(rules: Rules, world: World, client: int, call: Call) -> Next:
    name = f"{'taker' if client == TAKER else 'other'}'s {call.verb}"
    if call.reply is None and not call.is_refused:
        carried_out, reply = _carried_out(rules, world, call)
        yield f"{name} is carried out", carried_out.call(client, reply)
    elif not world.is_dead and not world.writes:  # the loop hears of it when it has written what it is at
        yield f"{name} is heard", _heard(rules, world.call(client, None), client, call)
    if world.losses and not world.is_dead:
        lost = _given_up(world._replace(losses=world.losses - 1).call(client, None), client, call)
        yield f"{name} is not answered", lost
        if call.reply is None and not call.is_refused:
            yield f"{name} is given up on its way", lost._replace(late=(*lost.late, call))


def _carried_out(rules: Rules, world: World, call: Call) -> tuple[World, Call]:
    if call.verb == "reserve":
        if call.tag <= world.retired:
            return world, call._replace(is_refused=True)
        return _reserved(rules, _deleted(world, call.leases), call)
    if call.verb == "delete":
        return _deleted(world, call.leases), call._replace(reply=())
    for lease in call.leases:
        if world.owns(lease):
            back = call.verb == "give back"
            world = world.job(lease.job, Job("ready", lease.attempts - back))
    return world, call._replace(reply=())


def _reserved(rules: Rules, world: World, call: Call) -> tuple[World, Call]:
    brought = [
        Lease(number, job.attempts + 1, call.tag)
        for number, job in enumerate(world.jobs)
        if job.place == "ready" and job.attempts < rules.most_attempts
    ][: call.room]
    for lease in brought:
        world = world.job(lease.job, Job("reserved", lease.attempts, lease.tag))
    return world, call._replace(reply=tuple(brought))


def _deleted(world: World, leases: tuple[Lease, ...]) -> World:
    for lease in leases:
        if world.owns(lease):
            world = world.job(lease.job, Job("done"))
    return world


# The clients


def _of_the_clients(rules: Rules, world: World) -> Next:
    told = world.told(rules)
    if world.is_renewing:
        yield "searches under the old tag", _renewed(world)
        return
    if _may_renew(rules, world, told) and not world.calls[OTHER]:
        retired = max(world.retired, world.tag)
        yield "retires its tag", world._replace(retired=retired, is_renewing=True, unanswered=(0, 0))
    free = sum(lane.stage == "free" for lane in world.lanes)
    done = [number for number, lane in enumerate(world.lanes) if lane.stage == "done" and not lane.knows]
    # What is settled by this very request makes room for what it brings.
    room = free + len(done) * rules.reuses
    if told.may_reserve and not world.writes and room:
        yield "reserves", _reserving(rules, world, done, room)


def _may_renew(rules: Rules, world: World, told: Told) -> bool:
    if rules.renews == "written":
        return told.may_renew
    return told.is_spent and (rules.renews == "at once" or world.calls[TAKER] is None)


def _reserving(rules: Rules, world: World, done: list[int], room: int) -> World:
    leases = tuple(world.lanes[number].lease for number in done)
    for number in done:
        world = world.lane(number, knows="deleting")
        if not rules.frees_when_answered:
            world = world.lane(number, stage="free", knows="", lease=NO_LEASE)
    call = Call("reserve", world.tag, leases, room, tuple(done))
    return world._replace(is_asking=True, is_wanted_back=False, is_another=bool(world.taking)).call(TAKER, call)


def _heard(rules: Rules, world: World, client: int, call: Call) -> World:
    if call.is_refused:
        return _given_up(world, client, call)
    if call.verb == "reserve":
        return world._replace(writes=_of_a_reply(rules, world, call))
    (number,) = call.lanes
    if call.verb == "release":
        free = Write("stage", number, "free")
        return world._replace(writes=(*rule.of_a_settled_job(number), free))
    return world._replace(writes=(Write("stage", number, "free"),))


def _of_a_reply(rules: Rules, world: World, call: Call) -> tuple[Write, ...]:
    assert call.reply is not None
    free = [number for number, lane in enumerate(world.lanes) if lane.stage == "free"]
    settled = [number for number in call.lanes if world.lanes[number].stage == "done"]
    taken = list(zip([*free, *settled], map(tuple, call.reply), strict=False))
    writes = rule.of_a_reply(taken, settled)
    return tuple(sorted(writes, key=lambda write: rules.order.index(write.what)))


def _given_up(world: World, client: int, call: Call) -> World:
    """Whatever it was, another tag is needed; what it was about is as before."""
    unanswered = (1, world.unanswered[1]) if client == TAKER else (world.unanswered[0], 1)
    for number in call.lanes:
        if world.lanes[number].knows == "deleting":
            world = world.lane(number, knows="")
    return world._replace(unanswered=unanswered)


def _renewed(world: World) -> World:
    """If a reserve was not answered: what it took goes back, but for what is on the board."""
    if world.is_asking:
        world = _reclaimed(world, world.tag, _on_the_board(world))
    return world._replace(tag=world.tag + 1, is_asking=False, is_renewing=False)


def _on_the_board(world: World) -> tuple[Lease, ...]:
    return tuple(lane.lease for lane in world.lanes if lane.stage not in ("free", "settled"))


def _reclaimed(world: World, tag: int, known: tuple[Lease, ...]) -> World:
    for number, job in enumerate(world.jobs):
        if job.place == "reserved" and job.tag == tag and Lease(number, job.attempts, job.tag) not in known:
            world = world.job(number, Job("ready", job.attempts - 1))
    return world


# The loop


def _of_a_lane(rules: Rules, world: World, number: int, lane: Lane) -> Next:
    other_is_free = world.calls[OTHER] is None and not world.is_renewing
    match lane.stage, lane.knows:
        case "reserved", "":
            yield f"l{number} begins", world._replace(writes=tuple(rule.of_a_begin(number)))
            if world.pauses:
                paused = world._replace(pauses=world.pauses - 1)
                yield f"l{number} is not to begin", paused.lane(number, knows="to be given back")
        case "reserved", "to be given back" if other_is_free and _may_give_back(rules, world):
            yield f"l{number} gives back", _calls(world, "give back", number)
        case "running", "":
            yield f"l{number} is done", world._replace(writes=tuple(rule.of_a_done_job(number)))
            if world.releases:
                yield f"l{number} fails", world._replace(releases=world.releases - 1).lane(number, knows="ruled on")
        case "running", "ruled on" if other_is_free:
            yield f"l{number} releases", _calls(world, "release", number)
        case "done", "" if other_is_free:
            yield f"l{number} deletes", _calls(world, "delete", number).lane(number, knows="deleting")


def _may_give_back(rules: Rules, world: World) -> bool:
    """Where only a reserve that is waited for counts, one that was given up does not."""
    told = world.told(rules)
    return {"unspent": told.may_give_back, "answered": not told.is_reserving, "": True}[rules.gives_back]


def _calls(world: World, verb: str, number: int) -> World:
    return world.call(OTHER, Call(verb, world.tag, (world.lanes[number].lease,), lanes=(number,)))


def _written(rules: Rules, world: World) -> World:
    write, *rest = world.writes
    world = world._replace(writes=tuple(rest))
    lane = world.lanes[write.lane] if write.lane >= 0 else Lane()
    match write.what:
        case "hold":
            reused = lane.stage not in ("free", "settled")
            held = world.lane(write.lane, stage="reserved", lease=Lease(*write.job), knows="new")
            return _wrong(held, "a lane was used twice", reused)
        case "stage":
            return _staged(world, write, lane)
        case "turn":
            return world._replace(turn=write.lane)
        case "begin":
            return world._replace(open=world.open + 1, uncounted=world.uncounted + 1)
        case "end":
            return world._replace(open=world.open - 1)
        case "forget":
            return world._replace(open=world.open - 1, uncounted=world.uncounted - 1)
        case "answered":
            return world._replace(is_asking=False)
        case _:
            return _looked(rules, world)


def _looked(rules: Rules, world: World) -> World:
    """What is wanted back does not begin, and its tag was retired."""
    is_wanted_back = rules.looks and world.is_wanted_back
    for number, lane in enumerate(world.lanes):
        if lane.knows == "new":
            world = world.lane(number, knows="to be given back" if is_wanted_back else "")
    return world._replace(unanswered=(1, world.unanswered[1])) if is_wanted_back else world


def _staged(world: World, write: Write, lane: Lane) -> World:
    staged = world.lane(write.lane, stage=write.stage, knows="")
    if write.stage == "free":
        return staged.lane(write.lane, lease=NO_LEASE)
    if write.stage == "running":
        again = _wrong(staged, "finished ran again", lane.lease.job in world.finished)
        starts = raised(world.starts, lane.lease.job)
        return again._replace(starts=starts, uncounted=world.uncounted - 1)
    if write.stage == "done":
        return staged._replace(finished=world.finished | {lane.lease.job})
    return staged


def _wrong(world: World, what: str, if_so: bool) -> World:
    return world._replace(wrongs=world.wrongs | {what}) if if_so else world


# The steward: a loop that stands still, and the death of its worker


def _taking_back(world: World) -> Next:
    """As in ``handback``: it says what it does, looks again, and only then takes what the reply was to bring."""
    tag, known = world.seen
    match world.taking:
        case "":
            seen = world.tag, _on_the_board(world)
            looked = world._replace(stalls=world.stalls - 1, taking="looked", seen=seen, is_another=False)
            yield "the steward finds it stuck", looked
        case "looked":
            yield "the steward says so", world._replace(taking="said", is_wanted_back=not world.is_another)
        case "said":
            is_sure = world.is_asking and not world.is_another
            yield "the steward looks again", world._replace(taking="sure") if is_sure else _left_alone(world)
        case "sure":
            yield "the steward retires its tag", world._replace(taking="retired", retired=max(world.retired, tag))
        case "retired":
            yield "the steward takes what is under it", _left_alone(_reclaimed(world, tag, known))


def _left_alone(world: World) -> World:
    return world._replace(taking="", seen=(0, ()), is_another=False)


def _dies(world: World) -> World:
    """What it had sent may still arrive."""
    late = tuple(call for call in world.calls if call and call.reply is None and not call.is_refused)
    lanes = tuple(lane._replace(knows="") for lane in world.lanes)
    return world._replace(
        deaths=world.deaths - 1, calls=(None, None), late=(*world.late, *late), lanes=(lanes[0], lanes[1]),
        writes=(), is_dead=True, burying="counts", is_renewing=False, unanswered=(0, 0),
    )  # fmt: skip


def _of_the_steward(rules: Rules, world: World) -> Next:
    if world.stewards:
        yield "the steward dies", world._replace(stewards=world.stewards - 1, writes=(), burying="counts")
    if world.writes:
        yield f"the steward writes {world.writes[0].what}", _written(rules, world)
        return
    match world.burying:
        case "counts":
            counts = _counts(rules, world) if rules.counts_first else ()
            yield "the steward counts", world._replace(writes=counts, burying="retires")
        case "retires":
            retired = max(world.retired, world.tag) if world.is_asking else world.retired
            yield "the steward retires the tag", world._replace(retired=retired, burying="reclaims")
        case "reclaims":
            found = _reclaimed(world, world.tag, _on_the_board(world)) if world.is_asking else world
            yield "the steward searches", found._replace(burying="settles")
        case "settles":
            yield from _settling(rules, world)
        case "leaves":
            yield "a new worker begins", _anew(rules, world)


def _counts(rules: Rules, world: World) -> tuple[Write, ...]:
    turn = world.turn
    if not rules.notes_turn:  # it has to guess: the first that is not running
        turn = next((number for number, lane in enumerate(world.lanes) if lane.stage != "running"), 0)
    return tuple(rule.of_a_dead_workers_counts(world.open > world.running, turn, world.lanes[turn].stage))


def _settling(rules: Rules, world: World) -> Next:
    """Lane by lane: in the store, then on the board."""
    left = [number for number, lane in enumerate(world.lanes) if lane.stage not in ("free", "settled")]
    if not left:
        writes = () if rules.counts_first else _counts(rules, world)
        yield "the steward is through", world._replace(burying="leaves", writes=writes)
        return
    number, lane = left[0], world.lanes[left[0]]
    mark = Write("stage", number, "settled")
    for verb in {"reserved": ("give back",), "running": ("release", "forgive"), "done": ("delete",)}[lane.stage]:
        settled = _settled(world, verb, lane.lease)
        writes = rule.of_a_settled_job(number) if lane.stage == "running" else [mark]
        yield f"the steward settles l{number}: {verb}", settled._replace(writes=tuple(writes))


def _settled(world: World, verb: str, lease: Lease) -> World:
    """``forgive``: an innocent is given back as if it had never begun."""
    if not world.owns(lease):
        return world
    if verb == "delete":
        return world.job(lease.job, Job("done"))
    if verb == "forgive":
        world = world._replace(starts=raised(world.starts, lease.job, -1))
    return world.job(lease.job, Job("ready", lease.attempts - (verb != "release")))


def _anew(rules: Rules, world: World) -> World:
    return world._replace(
        lanes=(Lane(), Lane()), tag=world.tag + 1, is_asking=False, is_dead=False, burying="", turn=-1,
        is_wanted_back=False,
    )  # fmt: skip


# What is promised


def what_a_lane_has_is_its_own(world: World) -> bool:
    """In the store, under its tag: nobody else runs it, or takes it away."""
    if world.is_dead:
        return True
    return all(world.owns(lane.lease) for lane in world.lanes if _is_kept(lane))


def _is_kept(lane: Lane) -> bool:
    return lane.stage in ("reserved", "running") and not lane.knows


def no_two_run_a_job_at_once(world: World) -> bool:
    running = [lane.lease.job for lane in world.lanes if lane.stage == "running" and not lane.knows]
    return world.is_dead or len(running) == len(set(running))


def nothing_is_reserved_unknown_to_all(world: World) -> bool:
    """It is on the board, or will be searched for, as the board says that a reserve has no reply."""
    known = {lane.lease for lane in world.lanes if lane.stage not in ("free", "settled")}
    return all(
        Lease(number, job.attempts, job.tag) in known or (world.is_asking and job.tag == world.tag)
        for number, job in enumerate(world.jobs)
        if job.place == "reserved"
    )


def what_is_done_was_finished(world: World) -> bool:
    """Nothing is deleted that nobody has run to its end."""
    return all(number in world.finished for number, job in enumerate(world.jobs) if job.place == "done")


def what_finished_never_runs_again(world: World) -> bool:
    return "finished ran again" not in world.wrongs


def a_lane_is_free_before_it_is_used_again(world: World) -> bool:
    return "a lane was used twice" not in world.wrongs


def attempts_are_starts(world: World) -> bool:
    """A job that waits was begun as often as it says; one that is reserved has begun, or is about to."""
    lawful = {"ready": (0,), "reserved": (0, 1)}
    pairs = zip(world.jobs, world.starts, strict=True)
    return all(job.attempts - starts in lawful[job.place] for job, starts in pairs if job.place in lawful)


def what_is_begun_is_counted_once(world: World) -> bool:
    """Where nobody is about to count, and nothing is left to be put right."""
    return not world.is_at_rest or (world.open == world.running and world.uncounted == 0)


LAWS = [
    what_a_lane_has_is_its_own,
    no_two_run_a_job_at_once,
    nothing_is_reserved_unknown_to_all,
    what_is_done_was_finished,
    what_finished_never_runs_again,
    a_lane_is_free_before_it_is_used_again,
    attempts_are_starts,
    what_is_begun_is_counted_once,
]
