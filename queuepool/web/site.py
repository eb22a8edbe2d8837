"""Turns the table of routes into an application: a page as HTML and as JSON, an action by a form and by JSON."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from queuepool.errors import QueuepoolError, StoreError
from queuepool.unix.escape import escaped
from queuepool.web.acts.acted import Acted
from queuepool.web.asked import Asked, asked_of
from queuepool.web.desk import Desk
from queuepool.web.entries import form_again, page_above
from queuepool.web.guard import DEADLINE, Refusal, WrongEntry
from queuepool.web.openapi import check_names, described
from queuepool.web.render import environment
from queuepool.web.routes import ACTS, API, EXPORTS, NAVIGATION, PAGES, ActRoute, ExportRoute, PageRoute
from queuepool.web.shown import for_page
from queuepool.web.static_files import static_files
from queuepool.web.submissions import Submission
from queuepool.web.visitors import Visitor, WebRole

#: the version of the JSON forms
_FORM = 1
_FOREVER = "public, max-age=31536000, immutable"
#: seconds before the end of a request's time at which an action that goes on gets a page of its own
_MARGIN = 2.0
#: of what is sent again though it is not known how far it came
_ONCE = "it was sent before, and is not tried again: look what was done, and load the page of its form anew"
_log = logging.getLogger("queuepool")
Endpoint = Callable[[Request], Awaitable[Response]]


class Site:
    """The pages of one dashboard; ``patience``: seconds for which an action is waited for."""

    def __init__(self, desk: Desk, patience: float = DEADLINE) -> None:
        self._desk = desk
        self._patience = patience
        #: in the place of a form's own key until a page is sent: nobody knows it
        self._key_mark = secrets.token_hex(16)
        self._static = {one.address: one for one in static_files().values()}
        self._templates = environment()
        self.app = Starlette(
            routes=[*self._routes()],
            exception_handlers={HTTPException: self._not_there},
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    def _routes(self) -> list[Route]:
        routes = [Route("/static/{file}", self._file, methods=["GET"])]
        routes.append(Route(f"{API}/openapi.json", self._description, methods=["GET"]))
        for is_json, start in ((True, API), (False, "")):
            for page in PAGES:
                # Its twin of the first page is /api/v1/overview.
                path = f"/{page.name}" if is_json and page.path == "/" else page.path
                routes.append(Route(start + path, self._endpoint(self._page, page, is_json), methods=[page.method]))
            for one in EXPORTS:
                routes.append(Route(start + one.path, self._endpoint(self._export, one, is_json), methods=["GET"]))
            for act in ACTS:
                routes.append(Route(start + act.path, self._endpoint(self._act, act, is_json), methods=["POST"]))
        return routes

    def _endpoint(self, answer: Callable[..., Awaitable[Response]], route: Any, is_json: bool) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            visitor: Visitor = request.scope["queuepool"].visitor
            asked: Asked | None = None
            try:
                asked = self._asked(request, is_json)
                if not visitor.may(route.role):
                    raise Refusal(403, f"this is for {_named(route.role)} only, and you are a {_named(visitor.role)}")
                check_names(route, asked)
                return await answer(request, asked, route)
            except Exception as error:  # noqa: BLE001 - one page must not cost the others
                refusal = _refusal_of(error, request.scope["path"])
                return await self._refused(request, refusal, is_json, asked)

        return endpoint

    def _asked(self, request: Request, is_json: bool) -> Asked:
        web, base = self._desk.web, request.scope["root_path"]
        return asked_of(request.scope, base=base, is_json=is_json, data=web.data, mask=web.mask)

    async def _page(self, request: Request, asked: Asked, route: PageRoute) -> Response:
        threads = self._desk.threads
        submit = threads.list if route.asks and not (route.renews and asked.is_renewal) else threads.page
        return await submit(partial(self._built, request, asked, route))

    def _built(self, request: Request, asked: Asked, route: PageRoute) -> Response:
        facts = route.facts(self._desk, asked)
        status = facts.pop("status", 200)
        if asked.is_json:
            return _json(facts, status)
        return self._html(request, asked, route.name, for_page(facts), status)

    async def _export(self, request: Request, asked: Asked, route: ExportRoute) -> Response:
        lines = await self._desk.threads.list(partial(self._exported, asked, route))
        headers = {"content-disposition": f'attachment; filename="{route.name}.jsonl"'}
        return Response(lines, 200, headers, "application/x-ndjson")

    def _exported(self, asked: Asked, route: ExportRoute) -> bytes:
        if not self._desk.exporting.acquire(blocking=False):
            raise Refusal(503, "another export is under way: wait for its end")
        try:
            return route.lines(self._desk, asked)
        finally:
            self._desk.exporting.release()

    async def _act(self, request: Request, asked: Asked, route: ActRoute) -> Response:
        do, place = partial(self._carried_out, route, asked), self._desk.place_of(asked)
        one, is_again = self._desk.submissions.take(asked.sent, do, place)
        left = request.scope["queuepool"].until - asyncio.get_running_loop().time() - _MARGIN
        await one.wait(max(min(left, self._patience), 0.0))
        came = one.came
        if came is None:
            return _goes_on(one, asked)
        if isinstance(came, Refusal):
            is_kept = is_again and came.status >= 500
            raise Refusal(came.status, f"{came.words}; {_ONCE}") if is_kept else came
        if asked.is_json:
            return _json({"words": came.words, "is_done": came.is_good, **came.facts}, 200 if came.is_good else 409)
        told = f"told={one.id}{'&again=yes' if is_again else ''}"
        after = f"{came.back}{'&' if '?' in came.back else '?'}{told}"
        return Response(status_code=303, headers={"location": asked.base + after})

    def _carried_out(self, route: ActRoute, asked: Asked) -> Acted | Refusal:
        try:
            return route.act(self._desk, asked)
        except Exception as error:  # noqa: BLE001 - it is told to who has asked for it, perhaps later
            return _refusal_of(error, asked.path)

    def _told(self, asked: Asked) -> Acted | None:
        """What came of the action after which this page is shown."""
        found = self._desk.submissions.get(asked.text("told"))
        outcome = found.outcome if found else None
        if outcome and asked.text("again"):
            done = "done" if outcome.is_good else "tried"
            return replace(outcome, words=f"sent twice, {done} once: {outcome.words}")
        return outcome

    def _html(self, request: Request, asked: Asked, name: str, facts: dict[str, Any], status: int) -> Response:
        context = {**self._frame(asked.base, asked.visitor), "asked": asked, "told": self._told(asked), "page": name}
        text = self._templates.get_template(f"{name}.html").render({**context, **facts})
        etag = f'"{hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]}"'
        # No browser keeps it, as it may hold payloads, and forms that were sent already; the script has its tag and its
        # last content by itself.
        headers = {"etag": etag}
        if status == 200 and asked.is_renewal and request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return self._sent(text, status, headers)

    def _sent(self, text: str, status: int, headers: dict[str, str] | None = None) -> Response:
        body = text.replace(self._key_mark, secrets.token_hex(16)).encode("utf-8", "replace")
        return Response(body, status, headers, "text/html; charset=utf-8")

    def _frame(self, base: str, visitor: Visitor) -> dict[str, Any]:
        """What every page has around its facts."""
        may = {role.name.lower(): visitor.may(role) for role in WebRole}
        return {
            "base": base, "visitor": visitor, "may": may, "navigation": NAVIGATION, "refresh": self._desk.web.refresh,
            "several": len(self._desk.links) > 1, "form_key": self._key_mark,
        }  # fmt: skip

    async def _refused(self, request: Request, refusal: Refusal, is_json: bool, asked: Asked | None = None) -> Response:
        if is_json:
            return _json({"error": refusal.words}, refusal.status)
        return await self._desk.threads.page(partial(self._told_no, request, refusal, asked))

    def _told_no(self, request: Request, refusal: Refusal, asked: Asked | None) -> Response:
        """Why not; of a wrong entry with its form, and always with the way back."""
        visitor: Visitor = request.scope["queuepool"].visitor
        base, form = request.scope["root_path"], None
        if asked and isinstance(refusal, WrongEntry):
            form = form_again(asked, request.method, refusal)
        about: dict[str, Any] = {
            "told": None, "page": "refused", "status_code": refusal.status, "form": form,
            "words": form.words if form else refusal.words,
            "above": page_above(request.scope["path"].removeprefix(base), itself=form is not None),
        }  # fmt: skip
        text = self._templates.get_template("refused.html").render({**self._frame(base, visitor), **about})
        return self._sent(text, refusal.status)

    async def _not_there(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        is_json = request.scope["path"].startswith(f"{request.scope['root_path']}{API}/")
        words = {404: "there is no such page", 405: "this is not done that way"}.get(error.status_code, error.detail)
        answer = await self._refused(request, Refusal(error.status_code, words), is_json)
        answer.headers.update(error.headers or {})
        return answer

    async def _file(self, request: Request) -> Response:
        found = self._static.get(request.path_params["file"])
        if found is None:
            raise HTTPException(404)
        return Response(found.content, headers={"cache-control": _FOREVER}, media_type=found.type)

    async def _description(self, request: Request) -> Response:
        body = json.dumps(described(request.scope["root_path"]), ensure_ascii=False)
        return Response(body, media_type="application/json")

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self._desk.close()


def _refusal_of(error: Exception, path: str) -> Refusal:
    """How a visitor is told of it."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, QueuepoolError):
        return Refusal(503 if isinstance(error, StoreError) else 409, str(error))
    key = secrets.token_hex(4)
    _log.error("%s cannot be served, error %s", escaped(path), key, exc_info=error)
    return Refusal(500, f"an error of ours: the log has it as {key}")


def _goes_on(one: Submission, asked: Asked) -> Response:
    """Where to see what comes of an action that takes longer than a request may."""
    page = f"/submissions/{one.id}"
    if asked.is_json:
        twin = f"{asked.base}{API}{page}"
        return _json({"words": "still under way", "is_done": False, "state": "running", "outcome": twin}, 202)
    return Response(status_code=303, headers={"location": asked.base + page})


def _named(role: WebRole) -> str:
    return role.name.lower()


def _json(facts: dict[str, Any], status: int) -> Response:
    body = json.dumps({"version": _FORM, **facts}, default=str, allow_nan=False) + "\n"
    return Response(body, status, media_type="application/json")
