"""Mutants of the package, and the verdict that the checker must give on each: they prove that it finds faults."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, QUICK, Plant
from tests.chaos.plants_around import AROUND
from tests.chaos.plants_around_handlers import OF_HANDLERS
from tests.chaos.plants_of_alerts import OF_ALERTS
from tests.chaos.plants_of_cancels import OF_CANCELS
from tests.chaos.plants_of_endings import OF_ENDINGS
from tests.chaos.plants_of_flows import OF_FLOWS
from tests.chaos.plants_of_lanes import OF_LANES
from tests.chaos.plants_of_limits import OF_LIMITS
from tests.chaos.plants_of_schedules import OF_SCHEDULES
from tests.chaos.plants_of_steps import OF_STEPS
from tests.chaos.plants_of_stops import OF_STOPS

_HANGING = replace(PEACE, hostile=8.0, modes=("hang_in_c",), drain=2.0)
#: a run of few tiny jobs: what any job shows is seen soon
_SPARING = replace(QUICK, rate=100.0, backlog=50, bulk=20, seconds=1.0)
_LATE = replace(
    PEACE, workers=2, remote=10, only=("late_requests",), naps=3.0, nap=(1.5, 5.0), rate=10.0, backlog=20, bulk=5,
    seconds=18.0, drain=20.0, retry_after=6.0,
)  # fmt: skip
_CHILDREN = replace(PEACE, hostile=8.0, modes=("leave_a_child",))
_BEFORE_IT_RUNS = "        began = time.monotonic()\n"
_SHOUT = "logging.getLogger('queuepool').warning"
_AT_ITS_END = "            self._runs = False\n"
_LUA = "stores/redis/lua"
_SQL = "stores/sql"
_SAME_TAG = "tag, self._unanswered, self.used_at = self.tag, self._store.unanswered, time.monotonic()"
_MOMENTS_AGO = """_PERIOD = 1.0


def _moments_ago():
    import time
    return time.monotonic() - 1.0
"""
#: Every death counts as one in the middle of a reserve; by chance hardly one would be.
_WITHIN_A_RESERVE = (
    ("steward/settle_dead.py", "if slot.reserve_sent_at and death.held", "if death.held"),
    ("steward/settle_dead.py", "take(slot.tag, slot.reserve_sent_at, ", "take(slot.tag, _moments_ago(), "),
    ("steward/settle_dead.py", "_PERIOD = 1.0\n", _MOMENTS_AGO),
)
_IN_ONE = "        return self.flows.settled(ending.member, self.leases.if_held([lease], act)[0])\n\n    def cancel("
_IN_TWO = """        import time
        done = self.leases.if_held([lease], act)[0]
        time.sleep(0.5)
        if done:
            self.client.transaction(lambda connection: self._records.add(connection, record))
        return done

    def cancel("""

PLANTS = {
    "reserve without a lease": Plant(
        "I1 lost",
        ((f"{_LUA}/reserve.lua", "receipt = put(reserved, lease, receipt)", ""),),
    ),
    "done job whose lease is missed": Plant(
        "I36 killed for a lease that could be renewed",
        (
            ("steward/leases.py", "if is_ours is False and not one.is_over", "if is_ours is False"),
            ("steward/leases.py", "kept = AT_WORK if slot.wanted_back == hand_number else (", "kept = ("),
        ),
        # The master looks at leases once a second.
        replace(QUICK, only=("kill_steward",), workers=4, ahead=4, naps=4.0, nap=(0.5, 1.5), seconds=8.0, drain=12.0),
    ),
    "release that leaves the lease behind": Plant(
        "I5 done twice, unexplained",
        ((f"{_LUA}/include/put_off.lua", "redis.call('zrem', KEYS[3], receipt)", ""),),
        replace(QUICK, retry_after=1.5, drain=8.0),
    ),
    "release that is not fenced": Plant(
        "I6 attempts",
        ((f"{_LUA}/release.lua", "if not is_held(redis.call('zscore', KEYS[3], receipt),", "if not (true or"),),
        replace(PEACE, workers=1, remote=3, only=("lose_replies",), seconds=3.0, hostile=200.0, modes=("raise",)),
    ),
    "given back to the tail": Plant(
        "I7 given back, but not to the head",
        ((f"{_LUA}/give_back.lua", "redis.call('lpush'", "redis.call('rpush'"),),
        replace(PEACE, only=("leave_now",), seconds=3.0, workers=4, rate=5000.0, longer=0.3, drain=15.0, ahead=1),
    ),
    "attempts not raised": Plant(
        "I6 attempts",
        ((f"{_LUA}/include/splice.lua", "return attempts + 1 end", "return attempts end"),),
        replace(QUICK, seconds=1.0),
    ),
    "alarm heard by Python alone": Plant(
        "I10 killed too late",
        (
            (
                "unix/signals.py",
                "signal.signal(signal.SIGALRM, signal.SIG_DFL)\n",
                "signal.signal(signal.SIGALRM, exit)\n",
            ),
            ("unix/signals.py", "faulthandler.register(signal.SIGALRM, file=", "dict(file="),
        ),
        replace(_HANGING, rate=20.0, backlog=10, bulk=5, seconds=1.0),
    ),
    "no second line behind the alarm": Plant(
        "I10 never killed",
        (("board/board.py", "if deadline and now >= deadline + grace:", "if False:"),),
        replace(_HANGING, modes=("steal_the_alarm",), drain=1.0, stop=0.5),
    ),
    "group left alone": Plant(
        "I9 orphan",
        (
            ("unix/fork.py", "            _signal_group(ended.si_pid, signal.SIGKILL)\n", "            pass\n"),
            ("unix/stray_processes.py", "if pid not in living and _is_lost", "if False and _is_lost"),
        ),
        _CHILDREN,
    ),
    "settled before it ran": Plant(
        "I1 lost",
        (("worker/attempt.py", _BEFORE_IT_RUNS, f"        self._settler.delete([lease])\n{_BEFORE_IT_RUNS}"),),
        _SPARING,
    ),
    "done before it ran": Plant(
        "I1 lost",
        (("worker/attempt.py", _BEFORE_IT_RUNS, f"        self._batch.succeeded(number)\n{_BEFORE_IT_RUNS}"),),
    ),
    "done and forgotten when the next hand came": Plant(
        "I5 done twice, unexplained",
        (
            (
                "worker/slot_writer.py",
                "slot.hold(leases, self.done)",
                "self.done = slot.hold(leases) or []",
            ),
        ),
        replace(  # killed with a full hand, not at a nap, and seldom enough to have had one before
            QUICK, retry_after=1.5, seconds=4.0, drain=8.0, ahead=16, naps=0.0, longer=0.02, kill_every=(0.3, 0.6)
        ),
    ),
    "receipt encoded anew": Plant(
        "I5 done twice, unexplained",
        (("stores/redis/queue.py", "*receipts\n", "*(json.dumps(json.loads(one)).encode() for one in receipts)\n"),),
        replace(PEACE, naps=20.0, retry_after=1.0, seconds=3.0, drain=8.0),  # no kill that would explain it
    ),
    "lease shorter than its job": Plant(
        "I4 overlap",
        (
            ("steward/leases.py", "        if not held:\n", "        if True:\n"),
            ("board/board.py", "if lease_end and now >= lease_end - margin:", "if False:"),
        ),
        replace(PEACE, workers=8, nap=(2.0, 2.0), naps=1.0, retry_after=1.0),
    ),
    "lease not shown again once the store was asked": Plant(
        "I4 overlap",
        (
            (
                "worker/slot_writer.py",
                "        if not self._shows_lease:  # the store was asked first, or something was logged\n"
                "            self._show_lease()\n",
                "",
            ),
        ),
        replace(PEACE, workers=8, nap=(4.0, 4.0), naps=2.0, retry_after=2.0, drain=10.0),
    ),
    "password in the log": Plant(
        "I16 secret",
        (("pool/start.py", "    roles = ", f"    log.{_SHOUT}(settings.connection.url)\n    roles = "),),
        replace(QUICK, seconds=0.3),
    ),
    "files left behind": Plant(
        "I9 file left behind",
        (("master/place.py", "        if not self._children.has_unsettled:\n            self._board.unlink()\n", ""),),
        replace(QUICK, seconds=0.3),
    ),
    "tag that outlives an unanswered call": Plant(
        "I4 overlap",
        (
            ("worker/membership.py", "tag = self._draw(self.tag if kept else 0)", _SAME_TAG),
            (f"{_LUA}/include/tags.lua", "  redis.call('zadd', tags, -now - RETIRED, tag)\n", ""),
        ),
        _LATE,
    ),
    "reserve that waits at the server unseen": Plant(
        "I6 attempts",
        (
            (
                "worker/prefetch.py",
                "        reply = send(self._order(queues), timeout, ",
                "        self._batch.replied()\n        reply = send(self._order(queues), timeout, ",
            ),
        ),
        replace(  # halted while it waits, given a job, and killed before it has read so
            QUICK, only=("stop_workers",), with_kills=1.0, kill_every=(0.1, 0.3), workers=4, rate=40.0, backlog=5,
            bulk=1, naps=0.0, seconds=6.0,
        ),
    ),
    "tag from a count that begins again": Plant(
        "I4 overlap",
        (
            (f"{_LUA}/join.lua", "tonumber(ARGV[3]) - 1, tonumber(ARGV[4])", "tonumber(ARGV[3]) - 1, 1"),
            *_WITHIN_A_RESERVE,
        ),
        replace(
            QUICK, only=("tags_repeat",), with_kills=1.0, kill_every=(0.1, 0.3), workers=6, seconds=4.0, naps=30.0,
            nap=(0.5, 1.5),
        ),
    ),
    "tag of 0, as Laravel's whole seconds have": Plant(
        "I4 overlap",
        (
            (f"{_LUA}/include/lease.lua", "score and tag ~= 0 and tag_of", "score and tag_of"),
            (f"{_LUA}/join.lua", "keep_tag(KEYS[1], tag, now, tonumber(ARGV[2]))\nreturn tag\n", "return 0\n"),
            (f"{_LUA}/retire.lua", "retire_tag(KEYS[1], ARGV[2], now)", ""),
            *_WITHIN_A_RESERVE,
        ),
        replace(QUICK, only=("laravel",), with_kills=1.0, workers=1, seconds=3.0, naps=8.0, nap=(0.3, 0.9)),
    ),
    "what an async job leaves on the loop": Plant(
        "I18 a task outlived its job",
        (
            (
                "worker/invoker.py",
                "self._loop.clear() if self._loop else Leftovers(0, set())",
                "Leftovers(0, set())",
            ),
        ),
        replace(PEACE, hostile=20.0, modes=("leave_a_task", "nap_async"), seconds=3.0),
    ),
    "soft timeout that outlives its handler": Plant(
        "I4 overlap",
        (("worker/invoker.py", f"{_AT_ITS_END}            timer.arm(0.0)\n", "            pass\n"),),
        replace(PEACE, hostile=20.0, modes=("soft_unreached", "nap"), seconds=3.0),
    ),
    "soft timeout at half its time": Plant(
        "I23 soft timeout too early",
        (("worker/invoker.py", "    timer.arm(seconds)\n", "    timer.arm(seconds / 2)\n"),),
        replace(PEACE, hostile=20.0, modes=("soft_past",)),
    ),
    "death that uses up the only try": Plant(
        "I19 failed by a death",
        (("settlement/verdict.py", "    if died and not policy.counts_deaths:\n        return False\n", ""),),
        _SPARING,
    ),
    "rows taken without a lock": Plant(
        "I5 done twice, unexplained",
        ((f"{_SQL}/statements.py", "first.with_for_update(skip_locked=skips_locked(dialect))", "first"),),
        replace(QUICK, store="postgres", workers=4),
    ),
    "row settled whoever has it": Plant(
        "I5 done twice, unexplained",
        (
            (f"{_SQL}/jobs_table.py", "return {tuple(row) for row", "return {tuple(row)[:2] for row"),
            (f"{_SQL}/leases.py", "[marked(lease) in existing", "[marked(lease)[:2] in existing"),
        ),
        replace(  # what is given back once more, when the answer was lost, is another's by then
            QUICK, store="postgres", workers=1, remote=5, only=("lose_replies",), longer=0.3, ahead=16, seconds=5.0
        ),
    ),
    "failed job dropped before it is recorded": Plant(
        "I1 lost",
        (
            (f"{_SQL}/queue.py", "self._records.add(connection, record)", "pass"),
            (f"{_SQL}/queue.py", _IN_ONE, _IN_TWO),
        ),
        replace(  # the workers do nothing but fail, and a kill comes to most of these pauses
            QUICK, store="sqlite", hostile=50.0, modes=("fail",), naps=0.0, backlog=20, bulk=20, kill_every=(0.2, 0.5)
        ),
    ),
    "written to a file that was replaced": Plant(
        "I5 done twice, unexplained",
        ((f"{_SQL}/client.py", " and not (file.is_retired or file.is_current):", " and False:"),),
        replace(QUICK, store="sqlite", only=("replace_the_file",), with_kills=0.0, naps=0.0, seconds=4.0),
    ),
    **AROUND,
    **OF_HANDLERS,
    **OF_ALERTS,
    **OF_CANCELS,
    **OF_ENDINGS,
    **OF_FLOWS,
    **OF_LANES,
    **OF_LIMITS,
    **OF_SCHEDULES,
    **OF_STEPS,
    **OF_STOPS,
}  # fmt: skip
