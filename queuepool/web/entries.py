"""A form with a wrong entry, to be shown again with all that was entered; and the way back to its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from starlette.routing import compile_path

from queuepool.web.asked import ONCE, PASSING, Asked
from queuepool.web.guard import READING, WrongEntry
from queuepool.web.render import FIELDS
from queuepool.web.routes import PAGES
from queuepool.web.visitors import WebRole

#: the pages to go back to: those that everybody may see
_SEEN = tuple(compile_path(page.path)[0] for page in PAGES if page.role is WebRole.VIEWER and page.method == "GET")
_Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FormAgain:
    """``words``: what is ``wrong``, a field; ``entries``: what people have entered; ``hidden``: what the page had."""

    words: str
    wrong: str
    method: str
    path: str
    entries: _Pairs
    hidden: _Pairs


def form_again(asked: Asked, method: str, wrong: WrongEntry) -> FormAgain | None:
    """The form that was sent, also with the field that was left empty; ``None`` if people do not fill in the field."""
    if wrong.name not in FIELDS:
        return None
    sent = [(name, value) for name, value in (*asked.query, *asked.form) if name not in (*PASSING, ONCE, "after")]
    entries = [pair for pair in sent if _is_entered(pair[0], method)]
    hidden = tuple(pair for pair in sent if pair not in entries)
    entries += [(wrong.name, "")] if wrong.name not in dict(sent) else []
    label = FIELDS[wrong.name][0]
    words = f"{label}: {wrong.why}" if label else wrong.why
    kind = "get" if method in READING else "post"
    return FormAgain(words, wrong.name, kind, quote(asked.path), tuple(entries), hidden)


def _is_entered(name: str, method: str) -> bool:
    """The ids in an action are those that a page has chosen."""
    return name in FIELDS and (name != "id" or method in READING)


def page_above(path: str, *, itself: bool) -> str:
    """The nearest page on the way up from a path; from ``itself`` on, if that is meant."""
    return next((quote(one) for one in _up(path, itself) if any(page.match(one) for page in _SEEN)), "/")


def _up(path: str, itself: bool) -> Iterator[str]:
    if itself:
        yield path
    while path := path.rpartition("/")[0]:
        yield path
