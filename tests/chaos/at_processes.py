"""Faults of the pool's processes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

from tests.chaos.pool import Pool
from tests.chaos.rig import Rig


def kill_workers(rig: Rig) -> Iterator[float]:
    """Kill one every few hundredths of a second; every other time one that runs a job of some length."""
    while True:
        _kill_a_worker(rig, "busy queue=high" if rig.chance.random() < 0.5 else "")
        yield rig.chance.uniform(*rig.plan.kill_every)


def kill_sometimes(rig: Rig) -> Iterator[float]:
    """The same beside another nemesis."""
    while True:
        _kill_a_worker(rig)
        yield rig.chance.uniform(0.05, 0.15)


def leave_in_peace(rig: Rig) -> Iterator[float]:
    while True:
        yield 60.0


def _kill_a_worker(rig: Rig, word: str = "") -> None:
    """A ready worker or, now and then, any: one that dies while it starts makes the master pause."""
    pool = rig.chance.choice(rig.pools)
    working = pool.pids(" busy ") + pool.pids(" idle ")
    victims = (word and pool.pids(word)) or (working if rig.chance.random() < 0.98 else pool.pids(": worker "))
    if victims:
        rig.kill(pool, rig.chance.choice(victims), signal.SIGKILL, "worker")


def stop_workers(rig: Rig) -> Iterator[float]:
    """SIGSTOP, and SIGCONT after a while."""
    while True:
        pool, victim = _any(rig, "worker")
        yield from _hold(rig, pool, victim, rig.chance.uniform(0.05, 1.5))
        yield rig.chance.uniform(0.05, 0.3)


def segfault_workers(rig: Rig) -> Iterator[float]:
    while True:
        pool, victim = _any(rig, "worker")
        rig.kill(pool, victim, signal.SIGSEGV, "worker")
        yield rig.chance.uniform(0.1, 0.5)


def kill_steward(rig: Rig) -> Iterator[float]:
    """Kill it while there are dead workers to settle, too."""
    while True:
        _kill_a_worker(rig)
        pool, victim = _any(rig, "steward")
        rig.kill(pool, victim, signal.SIGKILL, "steward")
        yield rig.chance.uniform(0.3, 1.0)


def kill_template(rig: Rig) -> Iterator[float]:
    """Kill it while it forks, too: workers die beside it."""
    while True:
        for pool in rig.pools:
            for victim in pool.pids(": template "):
                rig.kill(pool, victim, signal.SIGKILL, "template")
        _kill_a_worker(rig)
        yield rig.chance.uniform(0.1, 1.0)


def stop_steward(rig: Rig) -> Iterator[float]:
    while True:
        pool, victim = _any(rig, "steward")
        yield from _hold(rig, pool, victim, rig.chance.uniform(0.1, 1.5))
        yield rig.chance.uniform(0.1, 0.3)


def kill_master(rig: Rig) -> Iterator[float]:
    """Kill it; it is started again at once, and its old workers may finish their last job."""
    while True:
        pool = rig.chance.choice(rig.pools)
        rig.note_master(pool, "master")
        pool.end(signal.SIGKILL)
        yield rig.chance.uniform(1.0, 2.0)


def kill_host(rig: Rig) -> Iterator[float]:
    """Master, steward and workers at once; what they held is on the board that they leave."""
    while True:
        end_host(rig, rig.chance.choice(rig.pools))
        yield rig.chance.uniform(1.0, 2.5)


def end_host(rig: Rig, pool: Pool) -> None:
    children = pool.titles()
    rig.note_master(pool, "host")
    pool.end(signal.SIGKILL)
    for child in children:
        rig.kill(pool, child, signal.SIGKILL, "host")


def storm_of_signals(rig: Rig) -> Iterator[float]:
    """Send the signals that have no lasting effect on the master, in any order."""
    while True:
        pool = rig.chance.choice(rig.pools)
        for _ in range(20):
            _ask(pool, rig.chance.choice(_HARMLESS))
        _ask(pool, signal.SIGCONT)  # a pause is over when the storm is
        yield rig.chance.uniform(0.05, 0.3)


def stop_master(rig: Rig) -> Iterator[float]:
    while True:
        pool = rig.chance.choice(rig.pools)
        if pool.process:
            pool.process.send_signal(signal.SIGSTOP)
            try:
                yield rig.chance.uniform(0.1, 1.5)
            finally:
                pool.process.send_signal(signal.SIGCONT)
        yield rig.chance.uniform(0.1, 0.5)


def leave_now(rig: Rig) -> Iterator[float]:
    """QUIT: running jobs go back to the head of their queues."""
    while True:
        pool = rig.chance.choice(rig.pools)
        if not pool.pids("busy"):
            yield 0.02
            continue
        rig.note_master(pool, "quit")
        pool.end(signal.SIGQUIT)
        yield rig.chance.uniform(1.5, 2.5)


def restart_rolling(rig: Rig) -> Iterator[float]:
    """HUP: each worker is replaced when it has done its job."""
    while True:
        _ask(rig.chance.choice(rig.pools), signal.SIGHUP)
        yield rig.chance.uniform(0.3, 1.5)


def _ask(pool: Pool, signum: signal.Signals) -> None:
    """Send a signal to a master that handles signals already: earlier it would end the master."""
    if pool.process and pool.titles():
        pool.process.send_signal(signum)


def _any(rig: Rig, word: str) -> tuple[Pool, int]:
    """The pid of some child with this in its title; 0 if there is none just now."""
    pool = rig.chance.choice(rig.pools)
    return pool, rig.chance.choice(pool.pids(word) or [0])


def _hold(rig: Rig, pool: Pool, pid: int, seconds: float) -> Iterator[float]:
    if pid and rig.kill(pool, pid, signal.SIGSTOP, "stop"):
        try:
            yield seconds
        finally:
            rig.kill(pool, pid, signal.SIGCONT, "cont")


_HARMLESS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGCHLD, signal.SIGHUP)
NEMESES: dict[str, tuple[Callable[[Rig], Iterator[float]], int]] = {
    "kill_workers": (kill_workers, 8),
    "stop_workers": (stop_workers, 1),
    "segfault_workers": (segfault_workers, 1),
    "kill_steward": (kill_steward, 1),
    "kill_template": (kill_template, 1),
    "stop_steward": (stop_steward, 1),
    "kill_master": (kill_master, 1),
    "kill_host": (kill_host, 1),
    "storm_of_signals": (storm_of_signals, 1),
    "stop_master": (stop_master, 1),
    "leave_now": (leave_now, 1),
    "restart_rolling": (restart_rolling, 1),
}
