"""How the end of a job ends a member of a flow, and the events of flows."""

from __future__ import annotations

from queuepool.events import FlowEvent, FlowFailed, FlowFinished
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Ending, Lease
from queuepool.payload.members import FLOW, How, MemberEnd, member_in
from queuepool.settlement.verdict import NOT_RUN, Run
from queuepool.stores.contract import QueueStore
from queuepool.stores.flows import FlowEnd


def done_member(payload: Payload, run: Run) -> MemberEnd | None:
    """Of a job that is done, or was skipped, or of that whose end it reports; ``None`` if it is in no flow."""
    how: How = "o" if run.is_left_out else "c" if run.cancelled and not run.is_skipped else "d"
    return _end_of(payload, how, run)


def finish(store: QueueStore, lease: Lease, reports: MemberEnd | None, ending: Ending) -> bool:
    """As ``QueueStore.finish``. A member whose end the job ``reports`` as done may have failed before and been retried.

    Then its flow goes on first, in a step of its own, as it locks the rows of a flow in another order than an end does.
    """
    if reports and reports.how == "d" and ending.member:
        store.flows.resume(reports.flow, reports.number)
    return store.finish(lease, ending)


def as_done(lease: Lease) -> Lease:
    """The lease with the member of a flow that ends with it, if its job is one, and nothing but its end follows."""
    if FLOW.encode() not in lease.receipt:
        return lease
    return lease._replace(member=done_member(decode(lease.receipt, lease.attempts), NOT_RUN))


def failed_member(payload: Payload, run: Run) -> MemberEnd | None:
    """Of a job that has failed for good, or was cancelled."""
    return _end_of(payload, "f", run)


def _end_of(payload: Payload, how: How, run: Run) -> MemberEnd | None:
    member = member_in(payload.fields) if FLOW in payload.fields else None
    if member is None:
        return run.reports
    is_done = how == "d"
    return MemberEnd(
        member.flow, member.number, how, (run.result or "null") if is_done and member.is_taken else "",
        run.children if is_done else (),
    )  # fmt: skip


def event_of(end: FlowEnd) -> FlowEvent:
    """The event of a flow that has ended."""
    kind = FlowFinished if end.state == "done" else FlowFailed
    return kind(end.id, end.name, end.state)
