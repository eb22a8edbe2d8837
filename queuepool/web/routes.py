"""The one table of what there is: each page and each action, by its path, with who may ask for it.

Every page has a twin under ``/api/v1`` that answers with the same facts in JSON, every action one that answers with its
outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from queuepool.web.acts import errands, jobs, queues, waiting
from queuepool.web.acts import failed as of_failed
from queuepool.web.acts import flows as of_flows
from queuepool.web.acts import limits as of_limits
from queuepool.web.acts import pools as of_pools
from queuepool.web.acts import quarantine as of_quarantine
from queuepool.web.acts import schedules as of_schedules
from queuepool.web.acts.acted import Acted
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages import exports
from queuepool.web.pages.alerts import alerts
from queuepool.web.pages.confirm import chosen, confirm, confirm_waiting
from queuepool.web.pages.failed import failed
from queuepool.web.pages.flows import flow, flows
from queuepool.web.pages.history import history
from queuepool.web.pages.job import job
from queuepool.web.pages.journal import journal
from queuepool.web.pages.limits import limits, one_limit
from queuepool.web.pages.overview import overview
from queuepool.web.pages.pools import pools
from queuepool.web.pages.quarantine import quarantine
from queuepool.web.pages.queues import queue
from queuepool.web.pages.queues import queues as all_queues
from queuepool.web.pages.running import running
from queuepool.web.pages.schedules import schedules
from queuepool.web.pages.under_way import errand, submission
from queuepool.web.visitors import WebRole

API = "/api/v1"


class PageRoute(NamedTuple):
    """A page, by GET; by POST if what it is about does not fit into an address."""

    path: str
    #: of its template; and in the navigation, if it is there
    name: str
    facts: Callable[[Desk, Asked], dict[str, Any]]
    role: WebRole = WebRole.VIEWER
    method: str = "GET"
    #: whether it asks a store by itself, beside what everybody watches
    asks: bool = True
    #: and whether a renewal of it does not
    renews: bool = False


class ExportRoute(NamedTuple):
    """A list as a file, by GET: a line of JSON for each job."""

    path: str
    #: of the file, without its ending
    name: str
    lines: Callable[[Desk, Asked], bytes]
    role: WebRole = WebRole.VIEWER


class ActRoute(NamedTuple):
    """An action, by POST."""

    path: str
    act: Callable[[Desk, Asked], Acted]
    role: WebRole


PAGES = (
    PageRoute("/", "overview", overview, asks=False),
    PageRoute("/alerts", "alerts", alerts, asks=False),
    PageRoute("/queues", "queues", all_queues, asks=False),
    PageRoute("/queues/{connection}/{queue}", "queue", queue, renews=True),
    PageRoute("/queues/{connection}/{queue}/confirm", "confirm_waiting", confirm_waiting, WebRole.OPERATOR),
    PageRoute("/running", "running", running, asks=False),
    PageRoute("/failed", "failed", failed),
    PageRoute("/failed/confirm", "confirm", confirm, WebRole.OPERATOR),
    PageRoute("/failed/chosen", "confirm", chosen, WebRole.OPERATOR, "POST"),
    PageRoute("/flows", "flows", flows),
    PageRoute("/flows/{connection}/{id}", "flow", flow),
    PageRoute("/limits", "limits", limits),
    PageRoute("/limits/{connection}/{name}", "one_limit", one_limit),
    PageRoute("/jobs", "job", job),
    PageRoute("/jobs/{id}", "job", job),
    PageRoute("/history", "history", history),
    PageRoute("/pools", "pools", pools, asks=False),
    PageRoute("/schedules", "schedules", schedules),
    PageRoute("/quarantine", "quarantine", quarantine),
    PageRoute("/journal", "journal", journal),
    PageRoute("/errands/{id}", "errand", errand, WebRole.OPERATOR, asks=False),
    PageRoute("/submissions/{id}", "submission", submission, WebRole.OPERATOR, asks=False),
)
EXPORTS = (
    ExportRoute("/queues/{connection}/{queue}/export", "jobs", exports.waiting),
    ExportRoute("/failed/export", "failed", exports.failed),
)
ACTS = (
    ActRoute("/queues/{connection}/{queue}/pause", queues.pause, WebRole.OPERATOR),
    ActRoute("/queues/{connection}/{queue}/continue", queues.resume, WebRole.OPERATOR),
    ActRoute("/queues/{connection}/{queue}/move", waiting.move, WebRole.OPERATOR),
    ActRoute("/queues/{connection}/{queue}/run", waiting.run, WebRole.OPERATOR),
    ActRoute("/queues/{connection}/{queue}/drop", waiting.drop, WebRole.ADMIN),
    ActRoute("/failed/retry", of_failed.retry, WebRole.OPERATOR),
    ActRoute("/failed/forget", of_failed.forget, WebRole.ADMIN),
    ActRoute("/flows/{connection}/{id}/cancel", of_flows.cancel, WebRole.OPERATOR),
    ActRoute("/flows/{connection}/{id}/retry", of_flows.retry, WebRole.OPERATOR),
    ActRoute("/limits/{connection}/{name}/set", of_limits.set_number, WebRole.OPERATOR),
    ActRoute("/limits/{connection}/{name}/reset", of_limits.reset, WebRole.OPERATOR),
    ActRoute("/jobs/{id}/cancel", jobs.cancel, WebRole.OPERATOR),
    ActRoute("/jobs/{id}/stack", jobs.stack, WebRole.OPERATOR),
    ActRoute("/pools/{connection}/{id}/pause", of_pools.pause, WebRole.OPERATOR),
    ActRoute("/pools/{connection}/{id}/continue", of_pools.resume, WebRole.OPERATOR),
    ActRoute("/pools/{connection}/{id}/reload", of_pools.reload, WebRole.OPERATOR),
    ActRoute("/pools/{connection}/{id}/scale", of_pools.scale, WebRole.OPERATOR),
    ActRoute("/pools/{connection}/{id}/stop", of_pools.stop, WebRole.ADMIN),
    ActRoute("/schedules/{connection}/{name}/pause", of_schedules.pause, WebRole.OPERATOR),
    ActRoute("/schedules/{connection}/{name}/continue", of_schedules.resume, WebRole.OPERATOR),
    ActRoute("/schedules/{connection}/{name}/run", of_schedules.run, WebRole.OPERATOR),
    ActRoute("/quarantine/{connection}/{queue}/{id}/retry", of_quarantine.retry, WebRole.OPERATOR),
    ActRoute("/quarantine/{connection}/{queue}/{id}/drop", of_quarantine.drop, WebRole.ADMIN),
    ActRoute("/errands/{id}/stop", errands.stop, WebRole.OPERATOR),
)
#: the pages of the navigation, by what they are called there
NAVIGATION = (
    ("/", "Overview"), ("/alerts", "Alerts"), ("/queues", "Queues"), ("/running", "Running"), ("/failed", "Failed"),
    ("/flows", "Flows"), ("/limits", "Limits"), ("/pools", "Pools"), ("/schedules", "Schedules"),
    ("/quarantine", "Quarantine"), ("/history", "History"), ("/journal", "Journal"),
)  # fmt: skip
