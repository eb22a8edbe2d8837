"""The dashboard below a path of a Django project, for the project's own users.

from queuepool.contrib.django.dashboard import dashboard_urls

urlpatterns = [*dashboard_urls("queuepool"), ...]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, re_path
from django.views.decorators.csrf import csrf_exempt

from queuepool.web import Visitor, dashboard
from queuepool.web.guard import Doorway
from queuepool.web.visitors import WebRole
from queuepool.web.wsgi import exchanged, scope_of

#: what a project says of who asks: see ``queuepool.web.dashboard``
DjangoAccess = Callable[[HttpRequest], Visitor | tuple[str, str] | str | None]
_FOUND = "queuepool.django"


def by_status(request: HttpRequest) -> Visitor | None:
    """Superusers may do all, staff may see; for others nothing is there."""
    user = getattr(request, "user", None)
    if user is None or not user.is_active or not user.is_staff:
        return None
    return Visitor(user.get_username(), WebRole.ADMIN if user.is_superuser else WebRole.VIEWER)


def dashboard_urls(path: str, access: DjangoAccess = by_status, config: Path | str | None = None) -> list[URLPattern]:
    """What belongs into ``urlpatterns`` for a dashboard below ``path``, such as ``queuepool``, on WSGI and on ASGI.

    ``access`` is asked for each request, in the request's own thread; ``config`` names another file than the project's
    settings. Nothing is opened before the first request.
    """
    below = f"/{path.strip('/')}"

    @cache
    def pages() -> Doorway:
        return dashboard(config, access=lambda scope: scope[_FOUND])

    # It looks after the origin of forms by itself: its pages have none of Django's tokens.
    @csrf_exempt  # type: ignore[untyped-decorator]
    def view(request: HttpRequest) -> HttpResponse:
        # META has the form of CGI on either server, but not the path.
        own = {"path": request.path, "scheme": request.scheme, _FOUND: access(request)}
        scope = scope_of(request.META, below) | own
        answer = exchanged(pages(), scope, request.body)
        response = HttpResponse(answer.body, status=answer.status)
        for name, value in answer.headers:
            response.headers[name] = value
        return response

    return [re_path(rf"^{re.escape(below[1:])}(?:/.*)?$", view)]
