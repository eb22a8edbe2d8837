"""The job by which a Laravel worker reports how a member of a flow has ended: the flow goes on as this job ends.

So a report counts once, in the step that removes it, whichever worker dies, and however often it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from queuepool.errors import BadArguments, ResultTooLarge
from queuepool.jobs.current_job import current
from queuepool.jobs.decorator import JobFunction
from queuepool.jobs.job_options import Options
from queuepool.jobs.registry import Handler
from queuepool.payload.members import REPORT, How, MemberEnd, member_of
from queuepool.settlement.states import result_of

_ENDS: Mapping[str, How] = MappingProxyType({"done": "d", "failed": "f"})


def _report(flow: str, end: str, result: Any = None) -> None:
    job, member, how = current(), member_of(flow), _ENDS.get(str(end))
    if member is None or how is None:
        raise BadArguments(REPORT, f"flow={flow!r}, end={end!r} is not the end of a member")
    is_kept = member.is_taken and how == "d"
    text, problem = result_of(result) if is_kept else ("", "")
    ended = MemberEnd(member.flow, member.number, "f" if problem else how, (text or "null") if is_kept else "")
    job.run = job.run._replace(reports=ended)
    if problem:
        raise ResultTooLarge(REPORT, problem)


_FUNCTION = JobFunction(REPORT, _report, Options(tries=0))
#: not registered: each worker knows it, whatever its modules, and no list of jobs shows it
REPORTS = Handler(REPORT, _FUNCTION.bind, _FUNCTION.options, _report)
