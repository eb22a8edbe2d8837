"""The checker rules correctly on histories of jobs with limits, written by hand."""

from __future__ import annotations

from tests.chaos import limited
from tests.chaos.ledger import Ledger, read
from tests.chaos.seen_places import Resting
from tests.chaos.stores.seen import Seen
from tests.chaos.test_checker_on_written_histories import END, RUN, finish, kill, pushed, rule, said, start

_SECOND = 1_000_000_000
FEW, PACED = limited.FEW.number, limited.PACED.number
JOBS = pushed(FEW + 1, "p", queue="limited")


def worker(pid):
    return ("worker", {"pid": pid, "master": 1})


def begins(number, pid=0, key="few", **more):
    """A job with a limit, in a worker of its own unless that is said."""
    return start(f"p.{number}", 1, pid or 100 + number, at=[key], **more)


def ends(number):
    return finish(f"p.{number}", 1, 100 + number)


def at_once(count):
    """So many that run at a time, and then end."""
    return [*map(begins, range(count)), *map(ends, range(count))]


def number_is(number, name="few"):
    return [("limit", {"name": name, "n": number, "on": on}) for on in (1, 0)]


def violated(*events, step=1_000_000):
    """The rules that this chapter is about."""
    return sorted(name for name in rule(*events, END, step=step).violations if name.startswith("L"))


def test_so_many_run_at_a_time_and_no_more():
    assert [] == violated(*JOBS, *at_once(FEW))
    assert ["L1 above the limit"] == violated(*JOBS, *at_once(FEW + 1))
    one_after_another = [event for number in range(FEW + 1) for event in (begins(number), ends(number))]
    assert [] == violated(*JOBS, *one_after_another)


def test_each_value_has_places_of_its_own():
    apart = [begins(0, key="each=a"), begins(1, key="each=b")]

    assert [] == violated(*JOBS, *apart)
    assert ["L1 above the limit"] == violated(*JOBS, *apart, begins(2, key="each=a"))


def test_a_place_ends_with_the_effects_of_its_job_or_with_its_worker():
    before, last = [*map(begins, range(FEW))], begins(FEW)

    assert [] == violated(*JOBS, *before, kill(100), last)
    assert [] == violated(*JOBS, *before, said("die", "p.0", pid=100), last)
    assert [] == violated(*JOBS, *before, said("span", "p.0", pid=100), last)
    assert [] == violated(*JOBS, *before, last, ("death", {"pid": 100}))
    assert ["L1 above the limit"] == violated(*JOBS, *before, last, ("death", {"pid": 100}), step=_SECOND)
    assert ["L1 above the limit"] == violated(*JOBS, kill(100), *before, last)


def test_nothing_excuses_more_than_the_limit():
    outage = [("nemesis", {"name": "kill_redis", "on": on}) for on in (1, 0)]

    assert ["L1 above the limit"] == violated(*JOBS, outage[0], *at_once(FEW + 1), outage[1], step=_SECOND)


def test_a_queue_of_a_limit_is_one_for_all_pools():
    count = limited.AT_ONCE + 1
    steps = [*pushed(count, "c", queue="steps"), *(start(f"c.{number}", pid=10 + number) for number in range(count))]
    limited_run = ("run", RUN[1] | {"limits": True})

    assert [] == violated(*steps)
    assert ["L1 above the limit"] == violated(limited_run, *steps)


def test_a_number_set_by_hand_is_in_force_for_those_that_enter_afterwards():
    workers = [worker(100 + number) for number in range(FEW + 1)]
    raised, lowered, back = number_is(FEW + 1), number_is(1), number_is(-1)

    assert [] == violated(*JOBS, *raised, *workers, *at_once(FEW + 1))
    assert ["L1 above the limit"] == violated(*JOBS, *lowered, *workers, *at_once(FEW))
    assert ["L1 above the limit"] == violated(*JOBS, *raised, *back, *workers, *at_once(FEW + 1))
    assert [] == violated(*JOBS, *workers, *raised, *back, *at_once(FEW + 1)), "they may have entered before"
    assert ["L1 above the limit"] == violated(*JOBS, *number_is(0), *workers, *at_once(1))


def test_of_an_answer_that_never_came_nobody_knows_which_number_is_in_force():
    unsure = number_is(FEW + 1)[:1]

    assert [] == violated(*JOBS, *unsure, *map(worker, range(100, 103)), *at_once(FEW + 1))
    assert [] == violated(*JOBS, *number_is(1)[:1], *map(worker, range(100, 103)), *at_once(FEW))


def paced(moments):
    """Starts of jobs with a rate, one after another, at these seconds."""
    jobs = pushed(len(moments), "p", queue="limited")
    for number, moment in enumerate(moments):
        at = {"t": int((10 + moment) * _SECOND)}
        jobs += [("worker", {"pid": 100 + number, "master": 1, **at}), ("start", begins(number, key="paced")[1] | at)]
        jobs.append(("finish", ends(number)[1] | at))
    return jobs


def test_no_more_start_in_any_period_than_the_rate_allows():
    _, per = limited.LIMITS["paced"]
    burst = [0.0] * PACED

    assert [] == violated(*paced([*burst, *(per + 0.001 for _ in burst)]))
    assert [] == violated(*paced([*burst, per - 0.2])), "the first lines may come late"
    assert ["L1 a rate exceeded"] == violated(*paced([*burst, per - 0.3]))
    assert ["L1 a rate exceeded"] == violated(*paced([*burst, 0.0]))


def test_a_start_that_was_held_up_may_have_been_counted_before():
    _, per = limited.LIMITS["paced"]
    events = paced([*[per - 0.4] * PACED, 2 * per - 0.7])
    assert ["L1 a rate exceeded"] == violated(*events)

    first = {"pid": 100, "why": "stop", "sig": 19}
    early = [("worker", {"pid": 100, "master": 1, "t": 10 * _SECOND}), ("kill", first | {"t": 10 * _SECOND + 1})]
    here = next(at for at, (what, _) in enumerate(events) if what == "worker")
    assert [] == violated(*events[:here], *early, *events[here + 1 :])


def test_a_start_that_was_held_up_may_have_been_counted_before_the_others_of_its_period():
    _, per = limited.LIMITS["paced"]
    events = paced([*[per] * PACED, per + 0.2])
    last = max(at for at, (what, _) in enumerate(events) if what == "worker")
    pid = events[last][1]["pid"]
    stop = {"pid": pid, "why": "stop", "sig": 19, "t": 10 * _SECOND + 1}
    early = [("worker", events[last][1] | {"t": 10 * _SECOND}), ("kill", stop)]

    assert ["L1 a rate exceeded"] == violated(*events)
    assert [] == violated(*early, *events[:last], *events[last + 1 :])


def rest(seconds, key="few"):
    return ("rest", {"key": key, "since": _SECOND, "until": int((1 + seconds) * _SECOND), "free": 1, "first": "high 1"})


def test_no_place_is_at_rest_for_long_while_a_job_waits():
    assert [] == violated(rest(0.24))
    assert ["L2 a place at rest while a job waits"] == violated(rest(0.26))
    assert ["L2 a place at rest while a job waits"] == violated(rest(0.24), rest(0.3))


def test_the_death_of_a_steward_excuses_a_place_at_rest_and_that_of_a_worker_does_not():
    def while_(name):
        return [("nemesis", {"name": name, "on": on, "t": int(at * _SECOND)}) for on, at in ((1, 1.1), (0, 1.2))]

    assert [] == violated(rest(0.5), *while_("kill_steward"))
    assert [] == violated(rest(0.5), *while_("kill_redis"))
    assert ["L2 a place at rest while a job waits"] == violated(rest(0.5), *while_("kill_workers"))
    assert ["L2 a place at rest while a job waits"] == violated(rest(0.5), *while_("set_limits"))


def test_a_number_that_is_set_frees_places_until_its_command_is_done():
    def set_until(at, name="few"):
        return [("limit", {"name": name, "n": 3, "on": on, "t": int(t * _SECOND)}) for on, t in ((1, 0.9), (0, at))]

    assert [] == violated(rest(0.5), *set_until(1.3))
    assert [] == violated(rest(0.5), *set_until(1.3)[:1]), "it was never done"
    assert ["L2 a place at rest while a job waits"] == violated(rest(0.5), *set_until(1.2))
    assert ["L2 a place at rest while a job waits"] == violated(rest(0.5), *set_until(0.95))
    assert ["L2 a place at rest while a job waits"] == violated(rest(0.5), *set_until(1.3, name="each"))


def test_a_place_ends_with_its_lease():
    assert ["L2 a place without a lease"] == violated(("no_lease", {"key": "few", "holder": "x"}))


def test_what_is_parked_in_the_end_while_nothing_moves_is_parked_for_ever():
    parked = ("stored", {"where": "parked", "id": "p.2"})

    assert ["L3 parked for ever"] == violated(*JOBS, *at_once(1), parked, step=8 * _SECOND)
    assert [] == violated(*JOBS, *at_once(1), parked, step=7 * _SECOND), "unknown, as it was not waited for"


def seen(tmp_path, *looks):
    """What is written down of these looks, a tenth of a second apart: free places, and who waits."""
    ledger, resting = Ledger(tmp_path / "ledger"), Resting()
    for at, (free, first) in enumerate(looks):
        resting.see(Seen("few", free, frozenset(first)), at * _SECOND // 10, at * _SECOND // 10 + 1, ledger)
    return [(event["since"], event["until"]) for event in read(tmp_path / "ledger")]


def test_a_place_is_at_rest_from_the_first_look_that_shows_it(tmp_path):
    waits = (1, "a")

    assert [(1, _SECOND * 3 // 10)] == seen(tmp_path, waits, waits, waits, waits)


def test_a_place_is_at_rest_no_more_once_it_is_taken_or_a_job_has_left_the_line(tmp_path):
    waits, is_taken, other, more = (1, "a"), (0, "a"), (1, "b"), (1, "ab")

    assert [] == seen(tmp_path, waits, waits, is_taken, waits, waits, waits)
    assert [] == seen(tmp_path, waits, waits, other, other, other)
    assert 1 == len(seen(tmp_path, waits, more, more, more)), "others may line up behind"
