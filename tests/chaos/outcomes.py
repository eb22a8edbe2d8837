"""The outcome of each job: finished, failed, stored, or lost (I1, I3, I15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos import graphs
from tests.chaos.ledger import Event
from tests.chaos.tables import FAILED, FINISHED, OK, STORED, Jobs, Stream

if TYPE_CHECKING:
    from tests.chaos.checker import Findings


class Outcomes:
    """Judged at the end: every push that was acknowledged must be accounted for."""

    EVENTS = ("stored", "copies")

    def __init__(self, findings: Findings, jobs: Jobs) -> None:
        self._findings = findings
        self._jobs = jobs
        self._recorded: set[str] = set()

    def read(self, event: Event) -> None:
        job = event["id"]
        if event["f"] == "copies":
            # Two stores know no common transaction: a retry that is broken off leaves one too many, never too few.
            if not self._jobs.find(job)[0].is_retried:
                self._findings.violated("I3 copies", f"{job}: {event['n']} in the store at once")
            return
        if not job:
            self._findings.violated("I2 invented", f"something of nobody's is {event['where']}")
            return
        self._findings.count(f"stored: {event['where']}")
        stream, number = self._jobs.find(job)
        stream.mark(number, STORED)
        if event["where"] == "failed":
            self._recorded.add(job)
        elif event["where"].startswith("failed"):
            self._findings.violated("I15 recorded without a reason", job)

    def rule(self) -> None:
        for stream in self._jobs.streams.values():
            self._lost(stream)
            for number in stream.numbers(FAILED):
                is_done = stream.is_retried and stream.has(number, FINISHED)
                if stream.id(number) not in self._recorded and not is_done:
                    self._findings.violated("I15 failed, but not recorded", stream.id(number))

    def _lost(self, stream: Stream) -> None:
        # Its failure says nothing about the outcome of a later retry.
        accounted = FINISHED | STORED if stream.is_retried else FINISHED | FAILED | STORED
        lost = [number for number in stream.numbers(OK) if not stream.state[number] & accounted]
        if stream.name == graphs.STREAM:  # what has failed keeps the rest of its flow from starting
            lost = [
                number for number in lost if not any(stream.has(one, FAILED | STORED) for one in graphs.beside(number))
            ]
        if not lost:
            return
        there = [number for number in stream.numbers(OK) if stream.state[number] & accounted] or [-1]
        first, last = there[0], there[-1]
        for number in lost:
            where = "prefix" if number < first else "postfix" if number > last else "middle"
            self._findings.violated("I1 lost", f"{stream.id(number)} ({where})")
