"""What a page or an action is asked for: its query and its form, checked and bounded."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar
from urllib.parse import parse_qsl, urlencode

from queuepool.errors import BadPayload
from queuepool.payload import strict_json
from queuepool.search.filters import Condition, Filter, checked_path, moment, short
from queuepool.web.guard import Admitted, Refusal, WrongEntry
from queuepool.web.visitors import Visitor, WebRole

T = TypeVar("T")
#: most parameters of a query or a form
_MOST_FIELDS = 400
#: most characters of an id
_LONGEST_ID = 255
#: rows of a page by default, and most of them
ROWS, MOST_ROWS = 50, 200
#: the parameters that make a filter
FILTERS = ("id", "name", "where", "tag", "error", "since", "until", "search")
#: what jobs are counted by that is none of their arguments; and what may repeat some of these
_PLAIN_FACETS, _TEXTS = ("name", "queue", "state"), ("error", "tag")
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
#: the parameters that are about one showing of a page, and no part of what it shows
PASSING = ("told", "again", "part")
#: the field that makes a form act once: see ``Asked.sent``
ONCE = "once"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as pages and actions see it. Wrong values raise ``Refusal``."""

    visitor: Visitor
    #: the path below which the pages are, without a slash at its end
    base: str
    #: below that
    path: str
    parts: Mapping[str, str]
    query: Sequence[tuple[str, str]] = ()
    form: Sequence[tuple[str, str]] = ()
    is_json: bool = False
    data: str = "yes"
    mask: tuple[str, ...] = field(default=())

    @property
    def sees_raw(self) -> bool:
        """Whether this visitor sees payloads and traces as they are, with what is masked elsewhere."""
        return self.data == "yes" and (self.visitor.may(WebRole.ADMIN) or not self.mask)

    def all(self, name: str) -> list[str]:
        """The values of a parameter: of the query, and of what is sent those of its form."""
        return [value for found, value in (*self.query, *self.form) if found == name]

    def one(self, name: str, parse: Callable[[str], T], otherwise: T) -> T:
        """The parsed value of a parameter that may be given once; ``otherwise`` if it is empty or missing."""
        values = self.all(name)
        if len(values) > 1:  # also if one is empty: what a page shows must not be overruled by what it hides
            raise Refusal(400, f"{name} was given twice")
        if not values or not values[0].strip():
            return otherwise
        try:
            return parse(values[0].strip())
        except ValueError as error:
            raise WrongEntry(name, str(error)) from error

    def text(self, name: str) -> str:
        """A text of at most 200 characters; empty without one."""
        return self.one(name, short, "")

    def beside(self, fields: Sequence[str]) -> list[tuple[str, str]]:
        """The filters of the query for which these fields of a page have no place: each of them holds one value."""
        free, found = set(fields), list[tuple[str, str]]()
        for name, value in self.query:
            if name in free:
                free.remove(name)
            elif name in FILTERS and value.strip():
                found.append((name, value))
        return found

    def rows(self) -> int:
        """How many rows are wanted: a number above the most is that."""
        return max(1, min(self.one("limit", number, ROWS), MOST_ROWS))

    def filter(self) -> Filter:
        """The jobs that are meant."""
        now = time.time()
        wanted = Filter(
            id=self.text("id"),
            name=self.text("name"),
            where=tuple(self._condition(raw) for raw in self.all("where") if raw.strip()),
            tag=self.text("tag"),
            error=self.text("error"),
            since=self.one("since", lambda raw: moment(raw, now), None),
            until=self.one("until", lambda raw: moment(raw, now), None),
            search=self.text("search"),
        )
        for name in ("search", "tag", "error"):
            if getattr(wanted, name) and not self.may_find(name):
                self._refuse_guess(name)
        return wanted

    def _condition(self, raw: str) -> Condition:
        try:
            found = Condition.parsed(raw.strip())
        except ValueError as error:
            raise WrongEntry("where", str(error)) from error
        if not self.sees(found.path):
            self._refuse_guess("where")
        return found

    def may_find(self, name: str) -> bool:
        """Whether this visitor may look for jobs by this: what is not shown must not be found out letter by letter."""
        return (
            self.sees_raw
            if name == "search"
            else self.data == "yes" or name not in (*_TEXTS, "where", "column", "flow")
        )

    def sees(self, path: str) -> bool:
        """Whether this visitor may know the value of an argument, by its name or the path to it."""
        return self.sees_raw or (self.data == "yes" and not is_masked(path, self.mask))

    def _refuse_guess(self, name: str) -> NoReturn:
        raise Refusal(403, f"{name}: this would find what is not shown to you")

    def countable(self, name: str) -> str:
        """By what jobs are to be counted: see ``FoundJob.facets``. Empty without one."""
        found = self.one(name, checked_path, "")
        is_path = found not in ("", *_PLAIN_FACETS, *_TEXTS)
        if not (self.sees(found) if is_path else self.may_find(found)):
            self._refuse_guess(name)
        return found

    def cursor(self) -> str:
        """The key of the place from which a list goes on; empty at its beginning."""
        return self.one("after", str, "")

    @property
    def is_renewal(self) -> bool:
        """Whether only what a page renews by itself is wanted: every open tab asks for that again and again."""
        return self.text("part") == "live"

    @property
    def sent(self) -> str:
        """What tells this form from all others: who has sent what where, with the form's own key; empty without one.

        An agreement is enough for that, whatever else the form has: it is about one action with certain jobs.
        """
        agreed = self.text("agreed")
        if not (agreed or self.text(ONCE)):
            return ""
        about = [self.visitor.name, agreed or [self.path, sorted(self.query), sorted(self.form)]]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()

    def with_query(self, **changes: str | None) -> str:
        """The query with some parameters set, or left out, as text behind the path."""
        kept = [(name, value) for name, value in self.query if name not in {*changes, *PASSING} and value]
        kept += [(name, value) for name, value in changes.items() if value]
        return f"?{urlencode(kept)}" if kept else ""


def number(raw: str) -> int:
    """A whole number of at most nine digits, perhaps negative. Raises ``ValueError``."""
    if not (raw.removeprefix("-").isascii() and raw.removeprefix("-").isdigit() and len(raw) <= 10):
        raise ValueError("is not a whole number")
    return int(raw)


def ids_of(asked: Asked) -> tuple[str, ...]:
    """The ids that are given, each once. Raises ``Refusal`` for what cannot be one."""
    found = tuple(dict.fromkeys(filter(None, asked.all("id"))))
    if any(len(one) > _LONGEST_ID or not one.isprintable() for one in found):
        raise Refusal(400, f"id: is not an id, which has at most {_LONGEST_ID} characters")
    return found


def is_masked(path: str, mask: Sequence[str]) -> bool:
    """Whether an argument's value is not shown, by its name or the path to it."""
    lower = path.lower()
    return any(word in lower for word in mask)


def asked_of(scope: Mapping[str, Any], *, base: str, is_json: bool, data: str, mask: tuple[str, ...]) -> Asked:
    """The request. Raises ``Refusal`` for a query or a body that cannot be read."""
    entered: Admitted = scope["queuepool"]
    query = _pairs(scope.get("query_string", b""))
    if any(name in ("token", "access_token", "authorization") for name, _ in query):
        raise Refusal(401, "a token in an address is not taken: send it as Authorization: Bearer")
    form = _form(entered) if scope["method"] == "POST" else []
    if query and scope["method"] == "POST":  # which proxies write into their logs, and a link may have added to
        raise Refusal(400, "what is sent is taken from the body, not from the address")
    path = str(scope["path"]).removeprefix(base)
    about = (entered.visitor, base, path, scope.get("path_params", {}))
    return Asked(*about, query, form, is_json, data, mask)


def _form(entered: Admitted) -> list[tuple[str, str]]:
    kind = entered.fields.text(b"content-type").partition(";")[0].strip().lower()
    if kind == FORM:
        return _pairs(entered.body)
    if kind == JSON:
        return _pairs_in(entered.body)
    if not entered.body and not kind:
        return []
    raise Refusal(415, f"a body is {FORM} or {JSON}")


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Refusal(400, "the query or the form is not UTF-8, or too long") from error


def _pairs_in(raw: bytes) -> list[tuple[str, str]]:
    """The texts, numbers and lists of these of a JSON object."""
    try:
        facts = strict_json.read_object(raw or b"{}")
    except BadPayload as error:
        raise Refusal(400, "the body is not a JSON object") from error
    found = list[tuple[str, str]]()
    for name, value in facts.items():
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str | int | float) or isinstance(one, bool):
                raise Refusal(400, f"{json.dumps(name)[:80]} is not a text, a number or a list of these")
            found.append((name, str(one)))
    if len(found) > _MOST_FIELDS:
        raise Refusal(400, f"more than {_MOST_FIELDS} values")
    return found
