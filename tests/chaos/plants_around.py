"""Mutants of how a pool treats its surroundings: its signals, its board, its directory, a second store."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import PEACE, QUICK, QUIET, Plant

#: workers are in a job when they are killed: of an idle one the rule allows that it had begun one and not yet written
#: that down; judged once all is done
_BUSY = replace(
    QUICK, rate=50.0, backlog=20, bulk=10, naps=40.0, nap=(0.1, 0.4), kill_every=(0.25, 0.5), seconds=5.0, drain=30.0
)

AROUND = {
    "connections counted that are long gone": Plant(
        "I34 a push failed though the store was well",
        (
            (
                "stores/redis/client.py",
                "ConnectionPool(lambda: self._wraps(pool.connection_class(**pool.connection_kwargs)))",
                "ConnectionPool(lambda: self._wraps(pool.make_connection()))",
            ),
        ),
        # An outage of half of the time, and then a calm that is longer than what follows an outage.
        replace(QUICK, only=("kill_redis",), with_kills=0.0, seconds=28.0, phase=(13.5, 14.0), drain=10.0),
    ),
    "any record of the job taken for its own": Plant(
        "I1 lost",
        (
            (
                "stores/sql/records.py",
                "is_this = self._table.c.exception.endswith(line, autoescape=True)",
                "is_this = self._table.c.payload == record['payload']",
            ),
            ("steward/side_stores.py", "_TICK = 0.05", "_TICK = 0.002"),  # the workers recorded it themselves
            # a job must fail again between these two: they take their time
            ("stores/elsewhere.py", "\nfrom dataclasses import", "\nimport time\nfrom dataclasses import"),
            (
                "stores/elsewhere.py",
                "return Returned.DONE if self._records.drop([",
                "return Returned.DONE if time.sleep(0.05) or self._records.drop([",
            ),
        ),
        replace(QUIET, other="sqlite", only=("retry_all",), refused=40.0, seconds=6.0),
    ),
    "attempt of a dead worker that is not counted": Plant(
        "I25 not counted once",
        (("steward/death.py", "if self._meters.is_open and not self.slot.lanes:", "if False:"),),
        _BUSY,
    ),
    "attempt of a dead worker that counts twice": Plant(
        "I25 not counted once",
        (("steward/death.py", "        meters.end(", "        meters.end(0.0)\n        meters.end("),),
        _BUSY,
    ),
    "any number in a slot taken for the word of a worker that has left": Plant(
        "I25 not counted once",
        (
            (
                "board/fields.py",
                "return self.exited_cleanly == 1 and self.killed != Killed.OVERWRITTEN",
                "return bool(self.exited_cleanly)",
            ),
        ),
        replace(  # by jobs of the first producer: on a busy machine another one comes late
            QUIET, only=("scribble",), workers=8, naps=24.0, nap=(0.2, 0.4), hostile=2.0, modes=("scribble",),
            seconds=8.0, drain=30.0,
        ),
    ),
    "signals as they were when it was born": Plant(
        "I9 did not stop",
        (("unix/signals.py", "if signal.getsignal(signum) == signal.SIG_IGN:", "if False:"),),
        replace(PEACE, only=("born_deaf",), stop=3.0),
    ),
    "board that is everybody's memory": Plant(
        "the pool died",
        (("board/board.py", "_begun(path, file, lanes)", "_begun(path, file.mapped(), lanes)"),),
        replace(QUIET, only=("truncate",), hostile=8.0, modes=("truncate",), seconds=4.0, drain=4.0),
    ),
    "counted as it stands on the board": Plant(
        "the pool died",
        (("board/record.py", "return value if 0 <= value < _MAX_COUNT else 0", "return value"),),
        replace(QUIET, only=("scribble",), workers=4, hostile=8.0, modes=("scribble",), seconds=4.0),
    ),
    "receipts of another store taken for its own": Plant(
        "I2 invented",
        (("steward/orphaned_boards.py", "is_ours = board.header.store == self._runtime.store", "is_ours = True"),),
        replace(PEACE, only=("foreign_board",)),
    ),
    "failures taken to the other store by the workers": Plant(
        "I17 held up by the other store",
        (
            (
                "pool/worker_process.py",
                "recorder = _recorder(stores) if alone else None",
                "recorder = _recorder(stores)",
            ),
            ("steward/side_stores.py", "time.monotonic() + max(PERIOD, _PAUSES * (time.monotonic() - began))", "0.0"),
        ),
        replace(PEACE, other="sqlite", only=("other_away",), refused=20.0, seconds=5.0),
    ),
    "directory that is not made anew": Plant(
        "I12 size",
        (("master/place.py", "if self._runtime.keep():", "if False:"),),
        replace(QUIET, only=("vanish",), with_kills=1.0, seconds=4.0, drain=2.0, whole=5.0),
    ),
}  # fmt: skip
