"""A person at the dashboard: sees what is on a page, and clicks links and buttons by their words; the clicks count."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

from tests.support.dashboards import Browser
from tests.support.eventually import eventually

#: what has neither content nor end
_VOID = {"input", "meta", "link", "br", "line", "rect", "polyline"}


@dataclass
class Row:
    """A row of a table or an item of a list: what stands beside a control."""

    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@dataclass
class Form:
    """A form, with the values that it has before anybody types."""

    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    #: the names of what can be typed
    inputs: list[str] = field(default_factory=list)


@dataclass
class Control:
    """A link, a button, or a summary, which opens what is below it."""

    kind: str
    row: Row
    href: str = ""
    form: Form | None = None
    sends: tuple[str, str] | None = None
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


class Page(HTMLParser):
    """The controls and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.controls: list[Control] = []
        self.forms: list[Form] = []
        self._texts: list[str] = []
        self._rows = [Row()]
        self._open: list[Control] = []
        self._form: Form | None = None
        self._is_hidden = False
        self.feed(html)

    @property
    def text(self) -> str:
        return " ".join("".join(self._texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = {name: value or "" for name, value in attrs}
        if tag in ("tr", "li", "section"):
            self._rows.append(Row())
        elif tag == "form":
            self._form = Form(about.get("method", "get"), about.get("action", ""))
            self.forms.append(self._form)
        elif tag == "input" and self._form:
            self._take_input(about)
        elif tag in ("a", "button", "summary"):
            self._open.append(self._control(tag, about))
        elif tag in ("style", "script", "title"):
            self._is_hidden = True
        if tag not in _VOID:
            self._texts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("tr", "li", "section") and len(self._rows) > 1:
            self._rows.pop()
        elif tag == "form":
            self._form = None
        elif tag in ("a", "button", "summary") and self._open:
            self.controls.append(self._open.pop())
        elif tag in ("style", "script", "title"):
            self._is_hidden = False
        self._texts.append(" ")

    def handle_data(self, data: str) -> None:
        if self._is_hidden:
            return
        self._texts.append(data)
        for row in self._rows:
            row.words.append(data)
        for control in self._open:
            control.words.append(data)

    def _take_input(self, about: Mapping[str, str]) -> None:
        assert self._form
        kind, name = about.get("type", "text"), about.get("name", "")
        if kind == "hidden" or (kind == "text" and about.get("value")):
            self._form.fields.append((name, about.get("value", "")))
        if kind == "text" and name:
            self._form.inputs.append(name)

    def _control(self, tag: str, about: Mapping[str, str]) -> Control:
        sends = (about["name"], about.get("value", "")) if tag == "button" and about.get("name") else None
        return Control(tag, self._rows[-1], about.get("href", ""), self._form if tag == "button" else None, sends)


class Person:
    """Somebody who begins at the first page, and types and clicks until the incident is over."""

    def __init__(self, browser: Browser, path: str = "/") -> None:
        self._browser = browser
        self.clicks = 0
        self._go(path)

    def sees(self, words: str) -> bool:
        """Whether it stands on the page."""
        return words in self.page.text

    def sees_soon(self, words: str) -> bool:
        """As ``sees``, also where the page must renew itself first: it counts as many as there is time for."""
        eventually(lambda: self.sees(words) or self._go(self._path))
        return True

    def click(self, words: str, beside: str = "", **typed: str) -> None:
        """Click what has these words and stands ``beside`` others; ``typed`` is typed into its form before that."""
        control = self._control(words, beside)
        self.clicks += 1
        if control.kind == "a":
            self._go(control.href)
        elif control.form:
            self._send(control.form, typed, control.sends)

    def type(self, name: str, words: str) -> None:
        """Type into the field of this name and press Enter, which counts as a click."""
        form = next(one for one in self.page.forms if name in one.inputs)
        self.clicks += 1
        self._send(form, {name: words}, None)

    def _control(self, words: str, beside: str) -> Control:
        """Once it is there: see ``sees_soon``."""

        def found() -> Control | None:
            return next((one for one in self.page.controls if one.text == words and beside in one.row.text), None)

        with suppress(AssertionError):
            eventually(lambda: found() or self._go(self._path))
        control = found()
        assert control, f"no {words!r} beside {beside!r}: {[one.text for one in self.page.controls]}"
        return control

    def _send(self, form: Form, typed: Mapping[str, str], sends: tuple[str, str] | None) -> None:
        assert set(typed) <= set(form.inputs), (typed, form.inputs)
        fields = [(name, value) for name, value in form.fields if name not in typed]
        fields += [*typed.items(), *([sends] if sends else [])]
        if form.method == "get":
            self._go(f"{form.action}?{urlencode(fields)}")
            return
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = self._browser.ask("POST", form.action, urlencode(fields).encode(), kind)
        assert answer.status == 303, answer.text
        self._go(answer.headers["location"])

    def _go(self, path: str) -> None:
        self._path = path
        got = self._browser.get(path)
        assert got.status == 200, (path, got.status)
        self.page = Page(got.text)
