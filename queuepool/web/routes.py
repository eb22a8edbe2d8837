"""The one table of what there is: each page and each action, by its path, with who may ask for it.

Every page has a twin under ``/api/v1`` that answers with the same facts in JSON, every action one that answers with its
outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from queuepool.web.acts import errands, jobs, queues
from queuepool.web.acts import failed as of_failed
from queuepool.web.acts.acted import Acted
from queuepool.web.asked import Asked
from queuepool.web.desk import Desk
from queuepool.web.pages.failed import confirm, failed
from queuepool.web.pages.history import history
from queuepool.web.pages.job import job
from queuepool.web.pages.overview import overview
from queuepool.web.pages.queues import queue
from queuepool.web.pages.queues import queues as all_queues
from queuepool.web.pages.running import running
from queuepool.web.visitors import WebRole

API = "/api/v1"


class PageRoute(NamedTuple):
    """A page, by GET."""

    path: str
    #: of its template; and in the navigation, if it is there
    name: str
    facts: Callable[[Desk, Asked], dict[str, Any]]
    role: WebRole = WebRole.VIEWER


class ActRoute(NamedTuple):
    """An action, by POST."""

    path: str
    act: Callable[[Desk, Asked], Acted]
    role: WebRole


PAGES = (
    PageRoute("/", "overview", overview),
    PageRoute("/queues", "queues", all_queues),
    PageRoute("/queues/{connection}/{queue}", "queue", queue),
    PageRoute("/running", "running", running),
    PageRoute("/failed", "failed", failed),
    PageRoute("/failed/confirm", "confirm", confirm, WebRole.OPERATOR),
    PageRoute("/jobs/{id}", "job", job),
    PageRoute("/history", "history", history),
    PageRoute("/errands/{id}", "errand", errands.errand, WebRole.OPERATOR),
)
ACTS = (
    ActRoute("/queues/{connection}/{queue}/pause", queues.pause, WebRole.OPERATOR),
    ActRoute("/queues/{connection}/{queue}/continue", queues.resume, WebRole.OPERATOR),
    ActRoute("/failed/retry", of_failed.retry, WebRole.OPERATOR),
    ActRoute("/failed/forget", of_failed.forget, WebRole.ADMIN),
    ActRoute("/jobs/{id}/cancel", jobs.cancel, WebRole.OPERATOR),
    ActRoute("/jobs/{id}/stack", jobs.stack, WebRole.OPERATOR),
    ActRoute("/errands/{id}/stop", errands.stop, WebRole.OPERATOR),
)
#: the pages of the navigation, by what they are called there
NAVIGATION = (
    ("/", "Overview"),
    ("/queues", "Queues"),
    ("/running", "Running"),
    ("/failed", "Failed"),
    ("/history", "History"),
)
