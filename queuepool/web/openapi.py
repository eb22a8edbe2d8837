"""The description of what is below ``/api/v1``, as OpenAPI 3.1: made from the table of routes and from short forms.

``tests/web/test_openapi.py`` compares it with what pages and actions ask for, and with their real answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from inspect import getdoc
from types import MappingProxyType
from typing import Any

from queuepool import __version__
from queuepool.web.asked import Asked
from queuepool.web.guard import Refusal
from queuepool.web.routes import ACTS, API, EXPORTS, PAGES, ActRoute, ExportRoute, PageRoute

Facts = dict[str, Any]
#: the keys of each form: another form has them first; ``[]`` is a list, ``?`` may be null, ``-`` may be missing.
#: That of a page has its name.
FORMS: Mapping[str, str] = MappingProxyType({
    "Refused": "version:int error:text",
    "Read": "version:int problems:text[]",
    "Known": "Read remarks:text[] measured_ago:int?",
    "AlertRow": "kind:text subject:text since:time text:text pool:text",
    "AdvisedAlert": "AlertRow first:text? page:text?",
    "Limit": "kind:text watches:text limit:text",
    "Alerts": "Known alerts:AdvisedAlert[] limits:Limit[]",
    "Trouble": "kind:text text:text",
    "PoolRow": "kind:text pool:text name:text host:text state:text is_well:bool needs_attention:bool- takes_jobs:bool- "
    "rests:bool- troubles:Trouble[] workers:int?- live:int- busy:int- done:int- failed:int- since:time- outdated:int- "
    "boot_problem:text?- store_lost:time?- paused:text[]- scaling:text?- memory:int- done_per_minute:number?- "
    "failed_per_minute:number?- notice_age:number?- connection:text- id:text- queues:text[]- left_ago:number-",
    "Reach": "connection:text id:text",
    "ReachedPool": "PoolRow reach:Reach?",
    "Pools": "Known pools:ReachedPool[] shared:text[]",
    "QueueRow": "connection:text queue:text ready:int is_at_least:bool delayed:int reserved:int quarantined:int "
    "parked:int oldest:number? overdue:number growth_per_minute:number? empty_in:int? ended_per_minute:int? "
    "served:bool? paused:bool? paused_since:time? paused_by:text?",
    "Queues": "Known queues:QueueRow[]",
    "Totals": "pools:int workers:int live:int busy:int ready:int is_at_least:bool delayed:int quarantined:int "
    "oldest:number? done_per_minute:number? failed_per_minute:number? failed:int?",
    "Mark": "x:text words:text at:time",
    "Chart": "kind:text title:text top:number unit:text- bars:any[]- strokes:text[]- width:number height:number "
    "from:time? to:time? marks:Mark[]",
    "Drawn": "connection:text charts:Chart[]",
    "Overview": "Known alerts:AlertRow[] sentence:text totals:Totals pools:PoolRow[] queues:QueueRow[] "
    "histories:Drawn[] queues_left_out:int",
    "Count": "value:text jobs:int",
    "JobRow": "id:text state:text queue:text name:text? attempts:int? pushed:time? since:time? due:time? "
    "lease_ends:time? tags:text[] arguments:any line:text error:text? host:text? pool:text? worker:int? pid:int? "
    "time_left:number? progress:number? outcome:text? then:text? began:time? seconds:number? generation:int? "
    "pool_since:time? lease_lost:bool?",
    "Queue": "Read connection:text queue:text state:text sizes:QueueRow? jobs:JobRow[] by:text- counts:Count[] "
    "counted:int- is_whole:bool- looked_at:int unreadable:int- next:text?",
    "QueueCount": "queue:text jobs:int",
    "Concerned": "Read act:text connection:text count:int queues:QueueCount[] until:number? is_whole:bool agreed:text? "
    "must_type:bool known_queues:text[] filter:any[] back:text",
    "ConfirmWaiting": "Concerned queue:text state:text",
    "Confirm": "Concerned ids:text[]",
    "RunningJob": "id:text name:text queue:text attempt:int since:time running:number limit:number? share:number? "
    "progress:number? note:text? worker:int pid:int memory:int? host:text pool:text connection:text is_here:bool "
    "notice_age:number? is_lost:bool-",
    "Running": "Known jobs:RunningJob[] count:int left_out:int",
    "FailedRow": "id:text connection:text queue:text name:text class:text attempts:int? failed_at:time exception:text "
    "tags:text[] line:text columns:any",
    "FoundCount": "Count find:text?",
    "Facet": "by:text values:FoundCount[] left_out:int",
    "Failed": "Read connection:text connections:text[] jobs:FailedRow[] columns:text[]- facets:Facet[] total:int? "
    "found:int- is_whole:bool- looked_at:int unreadable:int- next:text?",
    "FlowRow": "id:text name:text state:text? progress:text? created:time? ended:time?",
    "Flows": "Read connection:text connections:text[] state:text states:text[] flows:FlowRow[] next:text?",
    "FlowCounts": "waiting:int running:int done:int failed:int cancelled:int skipped:int total:int",
    "Box": "x:int y:int state:text name:text label:text number:text? members:int words:text brief:text job:text?",
    "Stroke": "rule:text path:text",
    "Graph": "width:int height:int box_width:int box_height:int boxes:Box[] lines:Stroke[] left_out:int",
    "MemberRow": "number:text state:text name:text job:text? then:text[] then_left_out:int",
    "Flow": "Read FlowRow connection:text deadline:time? counts:FlowCounts? graph:Graph? states:text[] shown:text "
    "members:MemberRow[] next:text?",
    "Waiter": "job:text? name:text? pushed:time?",
    "LimitRow": "limit:text number:int code:int per:number? by_hand:bool keys:int held:int granted:int parked:int "
    "is_at_least:bool longest:Waiter",
    "Limits": "Read connection:text connections:text[] limits:LimitRow[] left_out:int",
    "LimitKey": "key:text held:int granted:int parked:int lines:int is_at_least:bool",
    "LimitLine": "key:text queue:text part:text? parked:int",
    "LineHead": "queue:text part:text? job:text name:text pushed:time?",
    "LimitHolder": "key:text until:time queue:text? job:text? name:text? host:text? pool:text? worker:int? pid:int?",
    "OneLimit": "Read connection:text limit:text row:LimitRow? keys:LimitKey[] lines:LimitLine[] waiters:LineHead[] "
    "holders:LimitHolder[] left_out:int",
    "KeptStep": "name:text kind:text value:any",
    "Attempt": "attempt:int? gap:text- outcome:text?- then:text?- began:time?- ended:time?- seconds:number?- "
    "host:text?- pool:text?- worker:int?- pid:int?- generation:int?- pool_since:time?- error:text?- lease_lost:bool-",
    "Job": "Read id:text connection:text? state:text? misses:text[] found:text- name:text- queue:text- attempts:int?- "
    "pushed:time?- since:time?- began:time?- due:time?- host:text- pool:text- worker:int?- pid:int?- running:number?- "
    "time_left:number?- limit:text?- before:int?- progress:number?- note:text- result:any- result_problem:text- "
    "error:text- is_failed:bool- is_over:bool- "
    "ended:Attempt[]- steps:KeptStep[]- ended_is_cut:bool- arguments:any- is_closed:bool- raw:text?- "
    "flow:text?- trace:text?- tags:text[]- options:any- size:int?-",
    "JobTimes": "queue:text job:text done:int released:int failed:int lost:int cancelled:int given_back:int "
    "per_minute:number run_p50:number? run_p95:number? run_p99:number? wait_p50:number? wait_p95:number?",
    "KeptQueue": "queue:text ready:int ready_most:int delayed:int reserved:int quarantined:int oldest:number "
    "oldest_most:number",
    "History": "Read connection:text connections:text[] range:text ranges:text[] order:text orders:text[] "
    "steps:number[] queue:text job:text jobs:JobTimes[] queues:KeptQueue[] charts:Chart[] from:time- to:time- "
    "bucket_seconds:number- ignored:int- queues_left_out:int- events:any-",
    "Missed": "first:time? last:time? reason:text",
    "ScheduleRow": "connection:text schedule:text when:text job:text queue:text last:time? next:time? next_utc:time? "
    "state:text paused_since:time? paused_by:text? last_pushed:time? last_pushed_by:text? last_job:text? "
    "last_state:text? ended_job:text? ended_state:text? ended_began:time? ended_at:time? ended_seconds:number? "
    "ended_attempts:int? ended_host:text? ended_error:text? missed:Missed[] words:text[]",
    "Schedules": "Read schedules:ScheduleRow[] remarks:text[]",
    "Entry": "id:text queue:text reason:text at:time bytes:int payload:text? hint:text",
    "Quarantine": "Read connection:text connections:text[] queue:text entries:Entry[] is_more:bool remarks:text[]",
    "Line": "at:time by:text verb:text subject:text count:int?",
    "Journal": "Read connection:text connections:text[] lines:Line[] is_more:bool",
    "ErrandRow": "id:text verb:text connection:text state:text done:int total:int by:text began:number words:text "
    "back:text",
    "Errand": "version:int errand:ErrandRow",
    "Submission": "version:int state:text words:text back:text?",
    # An action that goes on in the background also has the keys of its errand.
    "Acted": "version:int words:text is_done:bool outcome:text- changed:bool- job:text- stacks:any[]- id:text- "
    "verb:text- connection:text- state:text- done:int- total:int- by:text- began:number- back:text-",
})  # fmt: skip
#: what the values of some keys are, wherever they occur
_MEANINGS: Mapping[str, str] = MappingProxyType({
    "arguments": "whole numbers beyond 2^53 are texts", "result": "whole numbers beyond 2^53 are texts",
    "memory": "MB",
    "steps": "run times are counted up to each of these seconds: a percentile is right to within one",
    "oldest": "seconds for which the next job has been ready",
    "next": "to be given back as `after`; null at the end",
    "is_at_least": "whether there may be more than `ready`, or than `parked`",
    "until": "when they were counted, in Unix seconds",
    "agreed": "to be given back to the action", "must_type": "whether the action needs `typed`, the number",
    "page": "the path of the page on which to look first",
    "reach": "where actions go: /pools/{connection}/{id}/…", "is_done": "false with status 409",
})  # fmt: skip
_FILTER = "name:text where:text[] tag:text error:text since:text until:text search:text"
_LISTED = f"id:text {_FILTER} limit:int after:text"
#: what pages and exports read of the query, by their paths
QUERIES: Mapping[str, str] = MappingProxyType({
    "/queues/{connection}/{queue}": f"state:text by:text part:text {_LISTED}",
    "/queues/{connection}/{queue}/confirm": f"act:text state:text id:text {_FILTER}",
    "/queues/{connection}/{queue}/export": f"state:text id:text {_FILTER}",
    "/running": "name:text queue:text",
    "/failed": f"connection:text queue:text column:text[] {_LISTED}",
    "/failed/confirm": f"act:text connection:text queue:text id:text {_FILTER}",
    "/failed/export": f"connection:text queue:text id:text {_FILTER}",
    "/flows": "connection:text state:text flow:text limit:int after:text",
    "/flows/{connection}/{id}": "state:text name:text part:text limit:int after:text",
    "/limits": "connection:text",
    "/jobs": "id:text connection:text part:text",
    "/jobs/{id}": "connection:text part:text",
    "/history": "connection:text range:text order:text queue:text job:text",
    "/schedules": "connection:text",
    "/quarantine": "connection:text queue:text limit:int",
    "/journal": "connection:text text:text limit:int",
})  # fmt: skip
_COUNTED = "id:text[] agreed:text typed:int"
#: any text, in every action: of several with the same path and fields by the same visitor, one is done
ONCE = "once:text"
#: which pool is meant, checked beside its id
_POOL = "host:text pool:text"
#: what actions, and a page by POST, read of their bodies
FIELDS: Mapping[str, str] = MappingProxyType({
    "/queues/{connection}/{queue}/pause": "unserved:text",
    "/queues/{connection}/{queue}/move": f"state:text {_COUNTED} to:text unserved:text",
    "/queues/{connection}/{queue}/run": f"state:text {_COUNTED}",
    "/queues/{connection}/{queue}/drop": f"state:text {_COUNTED}",
    "/failed/chosen": "act:text connection:text queue:text id:text[]",
    "/failed/retry": f"connection:text {_COUNTED} to:text unserved:text",
    "/failed/forget": f"connection:text {_COUNTED}",
    "/flows/{connection}/{id}/retry": "typed:int",
    "/limits/{connection}/{name}/set": "number:int",
    "/jobs/{id}/cancel": "connection:text requeue:text grace:text",
    **{f"/pools/{{connection}}/{{id}}/{verb}": _POOL for verb in ("pause", "continue", "reload", "stop")},
    "/pools/{connection}/{id}/scale": f"order:text for:text {_POOL}",
})  # fmt: skip
_TYPES: Mapping[str, Facts] = MappingProxyType({
    "text": {"type": "string"}, "int": {"type": "integer"}, "number": {"type": "number"}, "bool": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"}, "any": {},
})  # fmt: skip


#: what links and renewals between pages have
_OF_PAGES = frozenset({"column", "by", "limit", "after", "part", "told", "again", "to"})


def described(base: str) -> Facts:
    """The whole description; ``base``: the path below which the pages are."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "queuepool",
            "version": __version__,
            "description": "The facts and actions of the dashboard.",
        },
        "servers": [{"url": base + API}],
        "security": [{}, {"password": []}, {"token": []}],
        **_parts(),
    }


def check_names(route: PageRoute | ExportRoute | ActRoute, asked: Asked) -> None:
    """Raise ``Refusal`` for a name that the route does not know: a misspelled filter must not mean all jobs."""
    if not (asked.is_json or route.path.endswith("/confirm")):
        return
    known = _names(route.path, is_page=isinstance(route, PageRoute))
    if odd := [name for name, _ in (*asked.query, *asked.form) if name not in known]:
        raise Refusal(400, f"{odd[0]}: nothing here has this name, only: {', '.join(sorted(known - _OF_PAGES))}")


@cache
def _names(path: str, *, is_page: bool) -> frozenset[str]:
    filters = _FILTER if is_page else ""  # of the list to go back to
    return frozenset(given(f"{QUERIES.get(path, '')} {FIELDS.get(path, '')} {ONCE} {filters}")) | _OF_PAGES


def form_of(route: PageRoute) -> str:
    """The name of the form of its answers."""
    return "".join(word.capitalize() for word in route.name.split("_"))


@cache
def _parts() -> Facts:
    paths = {f"/{page.name}" if page.path == "/" else page.path: {page.method.lower(): _page(page)} for page in PAGES}
    paths |= {one.path: {"get": _export(one)} for one in EXPORTS}
    paths |= {act.path: {"post": _act(act)} for act in ACTS}
    ways = {"password": {"type": "http", "scheme": "basic"}, "token": {"type": "http", "scheme": "bearer"}}
    return {"paths": paths, "components": {"schemas": {name: schema(name) for name in FORMS}, "securitySchemes": ways}}


def schema(name: str) -> Facts:
    """The JSON schema of a form. Keys that it does not have may come with any version."""
    properties, required = dict[str, Facts](), list[str]()
    for part in FORMS[name].split():
        key, _, kind = part.partition(":")
        if kind:
            properties[key] = _kind(kind.removesuffix("-")) | _meaning(key)
            required += [] if kind.endswith("-") else [key]
        else:
            properties |= schema(key)["properties"]
            required += schema(key)["required"]
    return {"type": "object", "properties": properties, "required": required}


def given(text: str) -> dict[str, Facts]:
    """The schemas of what a request may have, by name."""
    pairs = [part.split(":") for part in text.split()]
    return {name: _kind(kind) for name, kind in pairs}


def _kind(word: str) -> Facts:
    if word.endswith("?"):
        return {"anyOf": [_kind(word[:-1]), {"type": "null"}]}
    if word.endswith("[]"):
        return {"type": "array", "items": _kind(word[:-2])}
    return dict(_TYPES[word]) if word in _TYPES else _ref(word)


def _meaning(key: str) -> Facts:
    return {"description": _MEANINGS[key]} if key in _MEANINGS else {}


def _ref(form: str) -> Facts:
    return {"$ref": f"#/components/schemas/{form}"}


def _page(route: PageRoute) -> Facts:
    answer = _json(_ref(form_of(route)))
    refused = _json({"anyOf": [_ref(form_of(route)), _ref("Refused")]})
    return (
        _operation(route.method.lower(), route, route.facts)
        | _body(route.path)
        | {
            "parameters": _parameters(route.path),
            "responses": _responses("The facts of the page", answer, refused),
        }
    )


def _export(route: ExportRoute) -> Facts:
    lines = {"application/x-ndjson": {"schema": {"type": "string"}}}
    return _operation("get", route, route.lines) | {
        "parameters": _parameters(route.path),
        "responses": _responses("A line of JSON for each job", lines, _json(_ref("Refused"))),
    }


def _act(route: ActRoute) -> Facts:
    refused = _json({"anyOf": [_ref("Acted"), _ref("Refused")]})
    goes_on = {"description": "It goes on: ask at `outcome`", "content": _json(_ref("Acted"))}
    responses = _responses("It was done", _json(_ref("Acted")), refused) | {"202": goes_on}
    about = {"parameters": _parameters(route.path), "responses": responses}
    return _operation("post", route, route.act) | _body(route.path, ONCE) | about


def _body(path: str, more: str = "") -> Facts:
    fields = given(f"{FIELDS.get(path, '')} {more}")
    return {"requestBody": {"content": _json({"type": "object", "properties": fields})}} if fields else {}


def _operation(method: str, route: PageRoute | ExportRoute | ActRoute, does: Callable[..., Any]) -> Facts:
    name = re.sub(r"\W+", "_", route.path).strip("_") or "overview"
    words = (getdoc(does) or "").partition("\n")[0]
    return {"operationId": f"{method}_{name}", "summary": words, "description": f"Role: {route.role.name.lower()}."}


def _responses(words: str, content: Facts, refused: Facts) -> Facts:
    why = "What is known all the same, or why nothing is; of an action, why it was not done"
    return {"200": {"description": words, "content": content}, "default": {"description": why, "content": refused}}


def _json(of: Facts) -> Facts:
    return {"application/json": {"schema": of}}


def _parameters(path: str) -> list[Facts]:
    """Those of the path, then those of the query."""
    parts = [{"name": name, "in": "path", "required": True, "schema": _kind("text")} for name in parts_of(path)]
    queries = given(QUERIES.get(path, "")).items()
    return parts + [{"name": name, "in": "query", "schema": schema} for name, schema in queries]


def parts_of(path: str) -> list[str]:
    """The names in a route's path."""
    return re.findall(r"{(\w+)}", path)
