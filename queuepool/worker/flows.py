"""What a worker does for members of flows, beside running them: whether they are to begin, and with which results."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

from queuepool.errors import TableMissing
from queuepool.jobs.calls import Call
from queuepool.jobs.connecting import default_queue
from queuepool.jobs.current_flow import CurrentFlow
from queuepool.jobs.flows import as_call, encoded
from queuepool.payload.envelope import Payload
from queuepool.payload.members import ALL, FLOW, MemberOf, NewMember, TakenBy, taken_in
from queuepool.settlement.flows import event_of
from queuepool.worker.context import WorkerContext

#: seconds between looks at which flows are stopped, and what else there is to do for them
_PERIOD = 1.0


class FlowsOfWorker:
    """Asks the store of jobs; only members of flows cost it anything."""

    def __init__(self, context: WorkerContext) -> None:
        self._store = context.store
        self._outage = context.outage
        self._listeners = context.listeners
        self._settler = context.settler
        self._missing = ""
        self._stopped = frozenset[str]()
        self._look_again = 0.0

    def begin(self, payload: Payload, member: MemberOf) -> CurrentFlow:
        """The flow as the job of this payload sees it."""
        if time.monotonic() >= self._look_again:
            self._settler.mark_flows()
            self._missing = self._outage.insist(self._look)[0]
            self._settler.has_flows = not self._missing
            self._look_again = time.monotonic() + _PERIOD
        if self._missing:
            return CurrentFlow(member, _encoded, lacks=self._missing)
        if member.rule == "s" and member.flow in self._stopped:
            return CurrentFlow(member, _encoded, left_out=f"its flow {member.flow} has been stopped")
        return self._with_results(member, taken_in(payload.fields))

    def _look(self) -> str:
        """Returns what the store lacks for flows."""
        flows = self._store.flows
        try:
            for end in flows.look():
                self._listeners.emit(event_of(end))
            self._stopped = flows.stopped()
        except TableMissing as error:
            return str(error)
        return ""

    def _with_results(self, member: MemberOf, wanted: list[TakenBy]) -> CurrentFlow:
        taken, results = dict[str, Any](), list[Any]()
        for argument, numbers, is_list in wanted:
            found = self._outage.insist(partial(self._store.flows.results, member.flow, numbers))[0]
            values = [None if one is None else json.loads(one) for one in found]
            if argument == ALL:
                results = values
            elif missing := [number for number, one in zip(numbers, found, strict=True) if one is None]:
                why = f"the result of member {missing[0]} is not there: {self._why_missing(member.flow)}"
                return CurrentFlow(member, _encoded, lacks=f"argument {argument!r}: {why}")
            else:
                taken[argument] = values if is_list else values[0]
        return CurrentFlow(member, _encoded, taken, results)

    def _why_missing(self, flow_id: str) -> str:
        is_kept = self._outage.insist(partial(self._store.flows.find, flow_id))[0]
        return "results have at most 16 MiB together" if is_kept else f"flow {flow_id} is not kept any more"


def _encoded(call: Call[Any], member: MemberOf) -> NewMember:
    known = as_call(call)
    if known.takes:
        raise ValueError(f"{known.name}: a call that is added by a running job takes no results of others")
    terms, payload = encoded(default_queue(), known, {FLOW: member.text}, member.job_id)
    return NewMember(member.number, member.rule, terms.queue, terms.delay, payload, name=known.name)
