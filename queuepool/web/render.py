"""Facts as HTML. Everything is escaped; no template marks anything as safe."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from queuepool import __version__
from queuepool.top.layout import brief, duration
from queuepool.web.static_files import static_files

#: beside the word for the state of a flow's member
SIGNS: Mapping[str, str] = MappingProxyType({
    "waits": "…", "runs": "▸", "done": "✓", "failed": "✗", "cancelled": "⊘", "skipped": "–",
})  # fmt: skip
_THIN_SPACE = "\u202f"
#: how the commands write times
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d))")
#: what people enter in forms: what each field is called, and an example
FIELDS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "error": ("Error", "text of its first line"), "name": ("Job", "app.jobs.mail or app.*"),
    "queue": ("Queue", "default"), "where": ("Argument", "order.customer=4711"), "tag": ("Tag", "vip"),
    "id": ("Id", ""), "since": ("Since", "2h"), "until": ("Until", "30m"), "column": ("Column", "order.customer"),
    "search": ("Text", "anywhere in the payload"), "text": ("Text", "who, what or to what"),
    "order": ("Workers", "4, +2, auto"), "for": ("For", "1h"), "typed": ("Their number", ""), "to": ("To queue", ""),
    "unserved": ("", ""), "flow": ("Name", "album 7 or album*"), "number": ("Places", "5"),
})  # fmt: skip


@cache
def environment() -> Environment:
    """The templates, with what all of them use. Compiling a page takes 0.03 s: a process does it once."""
    made = Environment(
        loader=PackageLoader("queuepool.web"),
        autoescape=select_autoescape(default_for_string=True, default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(number=number, seconds=seconds, part=part, moment=moment, timed=timed)
    made.filters.update(share=share, pretty=pretty, brief=short_time)
    addresses = {name: one.address for name, one in static_files().items()}
    made.globals.update(version=__version__, query=query, static=addresses, fields=FIELDS, signs=SIGNS)
    return made


def number(value: float | None) -> str:
    """``12 345``; a dash for what is unknown."""
    if value is None:
        return "–"
    text = f"{value:,.1f}" if isinstance(value, float) and not value.is_integer() else f"{int(value):,}"
    return text.replace(",", _THIN_SPACE)


def seconds(value: float | None) -> str:
    """``1m05s``; a dash for what is unknown."""
    return "–" if value is None else duration(value)


def pretty(value: Any) -> str:
    """As JSON on several lines."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def short_time(value: float | None) -> str:
    """``4ms``; a dash for what is unknown."""
    return "–" if value is None else brief(value)


def share(value: float | None) -> str:
    """``85 %``."""
    return "–" if value is None else f"{value:.0%}"


def part(value: str) -> str:
    """A text as one part of a path."""
    return quote(str(value), safe="")


def moment(value: str) -> str:
    """A time in ISO 8601 as people read it, in UTC: the script shows it in the reader's zone."""
    try:
        at = datetime.fromisoformat(str(value))
        known = at.astimezone(UTC) if at.tzinfo else at
    except (ValueError, OverflowError):  # the notice of a pool may say anything
        return str(value)
    return f"{known.replace(microsecond=0, tzinfo=None).isoformat(' ')} UTC"


def timed(words: str) -> list[str]:
    """A text in parts: every second one is a time, to be shown as all others are."""
    return _TIME.split(str(words))


def query(**fields: Any) -> str:
    """A query of what is not empty."""
    pairs = [(name, one) for name, value in fields.items() for one in (value if isinstance(value, list) else [value])]
    text = urlencode([(name, one) for name, one in pairs if one not in (None, "")])
    return f"?{text}" if text else ""
