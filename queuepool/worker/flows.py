"""What a worker does for members of flows, beside running them: whether they are to begin, and with which results."""

from __future__ import annotations

import json
import time
from typing import Any

from queuepool.errors import JobError
from queuepool.events.listeners import Listeners
from queuepool.jobs.current_flow import CurrentFlow
from queuepool.jobs.registry import Task
from queuepool.payload.envelope import Payload
from queuepool.payload.members import MemberOf, TakenBy, taken_in
from queuepool.settlement.flows import event_of
from queuepool.settlement.outage import Outage
from queuepool.settlement.verdict import Run
from queuepool.stores.contract import QueueStore
from queuepool.worker.preparation import followed

#: seconds between looks at which flows are stopped, and what else there is to do for them
_PERIOD = 1.0


class ResultTooLarge(JobError):
    """Another member of the flow takes what the job has returned, and it cannot be kept."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: another job of its flow takes its result, which cannot be kept: {problem}")


class FlowsOfWorker:
    """Asks the store of jobs; only members of flows cost it anything."""

    def __init__(self, store: QueueStore, outage: Outage, listeners: Listeners) -> None:
        self._store = store
        self._outage = outage
        self._listeners = listeners
        self._stopped = frozenset[str]()
        self._look_again = 0.0

    def begin(self, payload: Payload, member: MemberOf) -> CurrentFlow:
        """The flow as the job of this payload sees it."""
        if time.monotonic() >= self._look_again:
            self._look()
            self._look_again = time.monotonic() + _PERIOD
        if member.rule == "s" and member.flow in self._stopped:
            return CurrentFlow(member, left_out=f"its flow {member.flow} has been stopped")
        return self._with_results(member, taken_in(payload.fields))

    def _look(self) -> None:
        flows = self._store.flows
        for end in self._outage.insist(flows.look)[0]:
            self._listeners.emit(event_of(end))
        self._stopped = self._outage.insist(flows.stopped)[0]

    def _with_results(self, member: MemberOf, wanted: list[TakenBy]) -> CurrentFlow:
        taken = dict[str, Any]()
        for argument, numbers, is_list in wanted:
            found = self._outage.insist(lambda: self._store.flows.results(member.flow, numbers))[0]
            if missing := [number for number, one in zip(numbers, found, strict=True) if one is None]:
                why = f"the result of member {missing[0]} is not kept: all results of a flow have at most 16 MiB"
                return CurrentFlow(member, lacks=f"argument {argument!r}: {why}")
            values = [json.loads(one) for one in found if one is not None]
            taken[argument] = values if is_list else values[0]
        return CurrentFlow(member, taken)


def kept_for_flow(name: str, run: Run, task: Task, returned: object) -> Run:
    """The run of a member with its result. Raises ``ResultTooLarge``."""
    run = followed(run, task, returned)
    if run.result_problem:
        raise ResultTooLarge(name, run.result_problem)
    return run if run.result or run.cancelled else run._replace(result="null")
