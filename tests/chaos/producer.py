"""Pushes jobs until it is stopped: ``python -m tests.chaos.producer``, a process of its own.

Streams: ``t`` tiny jobs in bulk on ``default``, as many as keep a backlog; ``h`` on ``high``: naps for a killer
to hit, delayed jobs, and those that harm their worker; ``r``, on ``high`` too, jobs that fail whenever they are tried;
``c`` on ``steps``, jobs after which Laravel is to go on; on ``limited`` ``g``, those of flows, and ``p``, those with
limits; ``l`` on ``wide``, those that run side by side, if any worker does that. Each stream's ids count from 0.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreError
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import Envelope, encode
from queuepool.settlement.states import pushed
from queuepool.stores.contract import NewJob
from tests.chaos import alerts, graphs, lane_modes, lanes, limited, steps
from tests.chaos.async_modes import ASYNC
from tests.chaos.async_soft_modes import ASYNC_SOFT
from tests.chaos.overruns import OVERRUN, ROBBERS
from tests.chaos.own_ledger import LEDGER
from tests.chaos.producer_settings import ProducerSettings
from tests.chaos.soft_modes import SOFT
from tests.chaos.world import WIDE

#: the share of naps that are long
_LONG = 0.01
#: seconds for a job that comes to its end by itself
_ENOUGH = 20.0
#: likewise, for one that blocks nobody for long
_SHORT = 0.8
#: likewise, for one whose worker is ended sooner
_LONG_ENOUGH = 8.0
#: one in this many tiny jobs takes longer, if any does
_LONGER = 20


class Producer:
    """One connection, and its streams."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._settings = settings
        about = {"control_url": settings.other, "lock_url": settings.url} if settings.other else {}  # as of the pools
        self._queue = Queue(ConnectionSettings(url=settings.url, prefix=settings.prefix, block_for=1.0, **about))
        self._chance = random.Random(settings.seed)
        self._next = {"t": 0, settings.stream: 0, "r": 0, steps.STREAM: 0, lanes.STREAM: 0, alerts.POISON: 0}
        self._next |= {graphs.STREAM: 0, limited.STREAM: 0}
        beside = ("beside", "deadly") if settings.lanes else ()
        kinds = ("naps", "delayed", "hostile", "refused", "steps", "graphs", "limits", *beside)
        self._due = dict.fromkeys(kinds, time.monotonic())
        self._began = time.monotonic()
        self._bursting = True
        self._acknowledged = 0
        self.stopped = False

    def run(self) -> None:
        if self._settings.alerts:
            raw = b'{"id":"%s.0"' % alerts.POISON.encode()  # no JSON
            self._noted(alerts.POISON, alerts.QUEUE, 1, 0.0, lambda store: store.push(alerts.QUEUE, [NewJob(raw)]))
        while not self.stopped:
            try:
                busy = self._fill()
            except StoreError:
                busy = False
            self._specials()
            if not busy:
                time.sleep(0.02)

    def _fill(self) -> bool:
        """Whether there was room for more tiny jobs."""
        settings = self._settings
        if 0 < settings.most <= self._acknowledged or not self._may_push():
            return False
        longer = {"m": "nap", "seconds": settings.longer} if settings.longer else {}
        stored = self._push("t", "default", [{} if number % _LONGER else longer for number in range(settings.bulk)])
        self._acknowledged += settings.bulk if stored else 0
        return stored

    def _may_push(self) -> bool:
        """Push in bursts up to the backlog, then pause until the average rate allows the next."""
        self._bursting = self._bursting or self._acknowledged < self._settings.rate * (time.monotonic() - self._began)
        self._bursting = self._bursting and self._queue.sizes("default").ready < self._settings.backlog
        return self._bursting

    def _specials(self) -> None:
        now = time.monotonic()
        for kind, due in self._due.items():
            rate = getattr(self._settings, kind)
            if rate and now >= due:
                self._due[kind] = now + self._chance.expovariate(rate)
                getattr(self, f"_{kind}")()

    def _naps(self) -> None:
        """Now and then one that outlasts its lease; of every other one the store is asked for the time first."""
        longest = self._settings.long if self._chance.random() < _LONG else 0.0
        seconds = longest or round(self._chance.uniform(*self._settings.nap), 3)
        options = {"retryUntil": int(time.time()) + 3600} if self._chance.random() < 0.5 else None
        self._push(self._settings.stream, "high", [{"m": "nap", "seconds": seconds}], options=options)

    def _delayed(self) -> None:
        delay = round(self._chance.uniform(0.1, 2.0), 3)
        due = time.monotonic_ns() + int(delay * 1e9)
        self._push(self._settings.stream, "high", [{"m": "nap", "seconds": 0.0, "due": due}], delay=delay)

    def _hostile(self) -> None:
        mode = self._chance.choice(self._settings.modes)
        data: dict[str, Any] = {"m": mode}
        data |= {"nap": {"seconds": 0.05}, "spin": {"seconds": 0.05}, "release": {"delay": 0.2}}.get(mode, {})
        data |= {"leave_a_child": {"seconds": 60}, "leave_a_session": {"seconds": 60}}.get(mode, {})
        data |= {"fork_many": {"children": 8}, "nap_async": {"seconds": 0.1}}.get(mode, {})
        timeout = self._settings.timeout if mode in OVERRUN else _ENOUGH
        limit = {"timeout": timeout, "grace": self._settings.grace if mode in ROBBERS else 0.0}
        self._push(self._settings.stream, "high", [data | limit], options={"timeout": timeout, "maxTries": 0})

    def _refused(self) -> None:
        self._push("r", "high", [{"m": "fail"}])

    def _push(self, stream: str, queue: str, data: list[Any], delay: float = 0.0, options: Any = None) -> bool:
        first = self._next[stream]
        made = [NewJob(payload(f"{stream}.{first + number}", one, delay, options)) for number, one in enumerate(data)]
        return self._noted(stream, queue, len(data), delay, lambda store: store.push(queue, made, delay))

    def _steps(self) -> None:
        number, mode = self._next[steps.STREAM], self._chance.choice(self._settings.step_modes)
        raw, lock = steps.step(number, mode, self._settings.url)

        state = pushed(f"{steps.STREAM}.{number}", "step", steps.QUEUE, 0.0)
        job = NewJob(raw, state)
        self._noted(steps.STREAM, steps.QUEUE, 1, 0.0, lambda store: store.push(steps.QUEUE, [job], 0.0, lock))

    def _has_room(self) -> bool:
        """Whether few jobs with limits wait: on a slow machine they would pile up, and be parked to the end."""
        try:
            waiting = self._queue.stores.limits.parked(limited.QUEUE) + self._queue.sizes(limited.QUEUE).ready
        except StoreError:
            return False
        return waiting < limited.MOST_WAITING

    def _graphs(self) -> None:
        if not self._has_room():
            return
        flow, members = graphs.drawn(self._next[graphs.STREAM], has_limits=self._settings.limits > 0)
        self._noted(graphs.STREAM, graphs.QUEUE, graphs.COUNT, 0.0, lambda store: store.write_flow(flow, members))

    def _limits(self) -> None:
        """Where jobs run side by side, some of them do: only such as harm nobody there."""
        if not self._has_room():
            return
        is_wide = self._settings.lanes > 0 and self._chance.random() < 0.4
        queue, mode = (WIDE, "nap") if is_wide else (limited.QUEUE, "")
        about: dict[str, Any] = {"mode": mode, "timeout": self._settings.timeout, "long": self._settings.long}
        jobs = limited.drawn(self._chance, self._next[limited.STREAM], **about)
        self._noted(limited.STREAM, queue, len(jobs), 0.0, lambda store: store.push(queue, jobs))

    def _beside(self) -> None:
        """Sometimes more than there are lanes. Some have deadlines that they reach only if another one blocks them."""
        modes = [mode for mode in self._settings.lane_modes if mode not in lane_modes.DEADLY]
        count = self._chance.choice((1, 5, 2 * self._settings.lanes)) if modes else 0
        by_timeout: dict[float, list[Any]] = {}
        for mode in self._chance.choices(modes or [""], k=count):
            quick = mode in lane_modes.LATE
            timeout = self._settings.timeout if quick else self._chance.choice((_SHORT, _ENOUGH))
            nap = {"seconds": round(self._chance.uniform(0.02, _SHORT / 4), 3)} if "nap" in mode else {}
            by_timeout.setdefault(timeout, []).append({"m": mode, "timeout": timeout, **nap})
        for timeout, data in by_timeout.items():
            self._push(lanes.STREAM, WIDE, data, options={"timeout": timeout, "maxTries": 0})

    def _deadly(self) -> None:
        if modes := [mode for mode in self._settings.lane_modes if mode in lane_modes.DEADLY]:
            mode, timeout = self._chance.choice(modes), self._settings.timeout
            if mode in lane_modes.UNPROVEN:
                timeout = _LONG_ENOUGH
            elif mode in lane_modes.BLOCKING and self._chance.random() < 0.5:
                timeout = 2 * _SHORT  # the others' deadlines come first
            data = {"m": mode, "timeout": lane_modes.ENDED.get(mode, timeout)}
            self._push(lanes.STREAM, WIDE, [data], options={"timeout": timeout, "maxTries": 0})

    def _noted(self, stream: str, queue: str, count: int, delay: float, push: Callable[[Any], None]) -> bool:
        """``False`` when it is not known to be stored."""
        first = self._next[stream]
        self._next[stream] = last = first + count
        facts = {"p": stream, "lo": first, "hi": last - 1, "q": queue, "delay": delay}
        LEDGER.write("enq_inv", **facts)
        try:
            push(self._queue.stores.queue)
        except StoreError as error:
            LEDGER.write("enq_unknown", **facts, why=str(error)[:60])
            return False
        LEDGER.write("enq_ok", **facts)
        return True


def payload(job_id: str, data: Any, delay: float = 0.0, options: Any = None) -> bytes:
    """As a producer with ids of its own writes it: the record of its failure has this id too, by which people retry."""
    envelope = Envelope(int(time.time()), delay=round(delay), options=options or {})
    made, raw = encode(_handler_of(data.get("m", "")), data, envelope)
    return raw.replace(made.encode(), job_id.encode())


def _handler_of(mode: str) -> str:
    of_modes: dict[str, Collection[str]] = {"Chaos@loop": ASYNC, "Chaos@soft": SOFT, "Chaos@soft_loop": ASYNC_SOFT}
    of_modes |= {"Chaos@wide": lane_modes.IN_LANES, "Chaos@thread": lane_modes.IN_THREADS}
    return next((name for name, modes in of_modes.items() if mode in modes), "Chaos@run")


def main() -> None:
    producer = Producer(ProducerSettings(**json.loads(sys.argv[1])))

    def stop(*_: object) -> None:
        producer.stopped = True

    signal.signal(signal.SIGTERM, stop)
    producer.run()
    os._exit(0)


if __name__ == "__main__":
    main()
