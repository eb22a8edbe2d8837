"""``php``: a job that Laravel's workers run, as a member of a flow, and what its payload tells them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from queuepool.jobs.calls import Call, PhpJob, has_taken
from queuepool.jobs.door import terms_of
from queuepool.jobs.job_options import Delay, Options
from queuepool.jobs.pusher import data_of
from queuepool.jobs.sending import Sending
from queuepool.payload.members import FLOW, REPORT_TO

if TYPE_CHECKING:
    from queuepool.jobs.client import Queue

_SETTING = "set flow_reports in [connection] to a queue that a pool serves"


def php(
    class_name: str,
    properties: Mapping[str, Any] | None = None,
    *,
    protected: Collection[str] = (),
    private: Collection[str] = (),
    queue: str = "default",
    delay: Delay = 0,
    options: Mapping[str, object] | None = None,
    encrypted: bool = False,
) -> Call[Any]:
    """A call, for a flow, of a job that a Laravel worker runs as an object of this PHP class.

    The arguments are those of ``Queue.push_object``. Others can take what its ``handle()`` returns; it takes no results
    itself. Raises ``TypeError`` for that, ``PhpDataRefused``, a ``ValueError``, for what PHP cannot hold, and
    ``ValueError`` for other wrong values.
    """
    given = {} if properties is None else properties
    if has_taken(given):
        raise TypeError(f"{class_name}: a job in PHP takes no results: let a job in Python take them, and save them")
    command = data_of(class_name, given, protected, private, None)
    fields = terms_of(class_name, queue, delay, options=options).options
    about = Options(encrypted=encrypted)
    return Call(class_name, given, about, Sending(queue=queue, delay=delay), {}, PhpJob(command, fields))


def command_of(queue: Queue, call: Call[Any], job: PhpJob, extra: Mapping[str, object]) -> Mapping[str, object]:
    """The data of a job in PHP; that of a member says where its end is to be reported. Raises ``ValueError``."""
    command = queue.pusher.encrypted(job.command) if call.options.encrypted else job.command
    if FLOW not in extra:
        return command
    if not (reports := queue.settings.flow_reports):
        raise ValueError(f"{call.name} runs in PHP, and nothing would tell the flow of its end: {_SETTING}")
    if reports == call.sending.queue:
        raise ValueError(
            f"{call.name} goes to {reports}, where Laravel's workers would take the reports too: {_SETTING}"
        )
    return {**command, REPORT_TO: {"flow": extra[FLOW], "queue": reports}}
