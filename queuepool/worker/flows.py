"""What a worker does for members of flows, beside running them: whether they are to begin, and with which results."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

from queuepool.errors import StoreDown, StoreError, TableMissing
from queuepool.jobs.calls import Call
from queuepool.jobs.connecting import default_queue
from queuepool.jobs.current_flow import CurrentFlow
from queuepool.jobs.current_job import Current
from queuepool.jobs.flows import as_call, encoded
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.payload.members import ALL, ARGS, FLOW, MemberEnd, MemberOf, NewMember, TakenBy, member_in, taken_in
from queuepool.settlement.flows import event_of
from queuepool.worker.context import WorkerContext
from queuepool.worker.plan import Plan

#: seconds between looks at which flows are stopped, and what else there is to do for them
_PERIOD = 1.0


class FlowsOfWorker:
    """Asks the store of jobs; only members of flows cost it anything."""

    def __init__(self, context: WorkerContext) -> None:
        self._store = context.store
        self._outage = context.outage
        self._listeners = context.listeners
        self._settler = context.settler
        # Behind a slow job an end that waits is carried out by a steward, if the worker runs one job at a time.
        self._lets_wait = not context.alone and not context.slot_writer.slot.lanes
        self._missing = ""
        self._stopped = frozenset[str]()
        self._look_again = 0.0

    def joined(self, job: Current, plan: Plan) -> bool:
        """Whether it has joined its flow; not if the store must be asked first, for this or for its plan."""
        asks = plan.limits or plan.unlocks or plan.has_end or self._missing or ARGS in job.payload.fields
        if asks or time.monotonic() >= self._look_again:
            return False
        job.joins(self._flow_of(_member(job.payload)))
        return True

    def begin(self, payload: Payload) -> CurrentFlow:
        """The flow as the job of this payload, a member, sees it."""
        if time.monotonic() >= self._look_again:
            self._settler.mark_flows()
            self._missing = self._outage.insist(self._look)[0]
            self._look_again = time.monotonic() + _PERIOD
        member = _member(payload)
        if self._missing:
            return CurrentFlow(member, _encoded, lacks=self._missing)
        flow, wanted = self._flow_of(member), taken_in(payload.fields)
        return flow if flow.left_out or not wanted else self._with_results(member, wanted)

    def _flow_of(self, member: MemberOf) -> CurrentFlow:
        if member.rule == "s" and member.flow in self._stopped:
            return CurrentFlow(member, _encoded, left_out=f"its flow {member.flow} has been stopped")
        return CurrentFlow(member, _encoded)

    def may_wait(self, job: Current) -> bool:
        """Whether the end of a member that is done may wait for the next reserve: the board shows all that it is."""
        is_plain = (flow := job.flow) is not None and flow.is_plain and not job.run.cancelled
        return is_plain and self._lets_wait and not self._missing

    def with_end(self, lease: Lease, job: Current) -> Lease:
        """The lease of a member whose end waits."""
        self._settler.mark_flows()
        assert job.flow
        return lease._replace(member=MemberEnd(job.flow.id, job.flow.member.number, "d"))

    def _look(self) -> str:
        """Returns what the store lacks for flows."""
        flows = self._store.flows
        try:
            for end in flows.look():
                self._listeners.emit(event_of(end))
        except TableMissing as error:
            return str(error)
        except StoreDown:
            raise
        except StoreError:  # of one flow: its steward meets it too, and reports it
            pass
        self._stopped = flows.stopped()
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
        is_kept = self._outage.insist(partial(self._store.flows.standing, flow_id))[0]
        return "results have at most 16 MiB together" if is_kept else f"flow {flow_id} is not kept any more"


def _member(payload: Payload) -> MemberOf:
    member = member_in(payload.fields)
    assert member  # by its plan
    return member


def _encoded(call: Call[Any], member: MemberOf) -> NewMember:
    known = as_call(call)
    if known.takes:
        raise ValueError(f"{known.name}: a call that is added by a running job takes no results of others")
    terms, payload = encoded(default_queue(), known, {FLOW: member.text}, member.job_id)
    return NewMember(member.number, member.rule, terms.queue, terms.delay, payload, name=known.name)
