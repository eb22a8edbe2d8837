"""Variants of the protocol."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.world import Copy, Tag, Worker, World


@dataclass(frozen=True, slots=True)
class Rules:
    """A variant of the protocol, and how much may go wrong in it."""

    #: settlements look for the receipt before they write
    fenced: bool = True
    #: dead workers are buried at once by one who read their hands; Laravel waits for the lease
    steward: bool = True
    #: ticks that a job may run; ``None``: nothing ends it
    timeout: int | None = None
    #: leases are renewed, and who cannot be renewed is killed before its lease ends
    renewed: bool = True
    lease_kill: bool = True
    lease_from_hearing: bool = False
    #: a reserve is sent, carried out and heard one after the other, with time in between
    slow: bool = False
    #: whether a lost answer is followed by a reclaim; else by another reserve
    reclaims: bool = True
    #: what a reclaim must not give back is told to it
    reclaims_knowing: bool = True
    #: a job starts when it is heard of and is settled when it is done, and not later
    swift: bool = False
    #: which verbs may be carried out after their sender has given them up
    late: tuple[str, ...] = ()
    #: who got no answer goes on under another tag, and nothing is reserved under the old one any more
    retires: bool = True
    #: no two living workers have one tag
    unique: bool = True
    #: whoever has nothing to do sends a reserve that waits at the server until there may be a job
    waits: bool = False
    #: the board shows a reserve that waits there
    shows_waits: bool = True
    #: the dead are buried, and lost answers reclaimed, before a lease can end
    prompt: bool = True
    #: whoever gives back or settles must have the tag of the lease
    tagged: bool = True
    #: each job's outcome is pushed when it ends
    follows: bool = False
    #: a finish looks for the receipt before it pushes the outcome
    checked: bool = True
    #: the outcome is pushed in the step that ends the job; else before, in a step of its own
    together: bool = True
    #: the steward looks what follows from the receipts of jobs that are done
    looks: bool = True
    jobs: int = 1
    #: for each job its queue; a lower number is served first
    queues: tuple[int, ...] = (0, 0)
    workers: int = 2
    retry_after: int = 2
    delays: tuple[int, ...] = (0,)
    crashes: int = 1
    stops: int = 0
    masters: int = 0
    #: answers that are lost
    losses: int = 0
    max_crashes: int = 9
    #: how often a job may fail, 0 = no limit; here it never does by itself
    tries: int = 0
    #: as in Laravel, a death uses up a try
    counts_deaths: bool = False
    #: where the model ends: nobody takes a job that was begun so often
    most_attempts: int = 2

    def may_begin(self, attempts: int) -> bool:
        """So many times, this one included."""
        most = self.tries if self.counts_deaths else self.tries + self.max_crashes - 1
        return self.tries == 0 or attempts <= most

    def tag(self, number: int, life: int) -> Tag:
        """Of a worker; where tags are not unique everybody has one and the same."""
        return (number, life) if self.unique else (0, 0)

    def first(self) -> World:
        """Every job is pushed, every worker idle."""
        none = (0,) * self.jobs
        jobs = tuple(Copy(job, 0) for job in range(self.jobs))
        workers = (Worker(),) * self.workers
        limits = self.crashes, self.stops, self.masters, self.losses
        return World(jobs, workers, none, none, none, *limits, outcomes=none if self.follows else ())
