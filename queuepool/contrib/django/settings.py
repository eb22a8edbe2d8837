"""``QUEUEPOOL`` in Django's settings: the keys and values of the INI file, as Python writes them.

    QUEUEPOOL = {"connection": {"database": "default"}, "pool": {"workers": 4}, "pool:mail": {"queue": "mail"}}

``database`` stands for the URL of one of ``DATABASES``; without any, the queue is in ``default``.
``on_commit`` is read in ``dispatching``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from queuepool.config.application import Source
from queuepool.config.entries import Document, Entry, Place, Problem, check_header
from queuepool.config.settings import KEYS
from queuepool.contrib.django.database import url_of

NAME, ON_COMMIT = "QUEUEPOOL", "on_commit"
#: ``EMAIL_BACKEND`` where messages are jobs
MAIL_BACKEND = "queuepool.contrib.django.mail.EmailBackend"
#: a pool's modules unless it names some: it finds those of the apps
MODULES = "queuepool.contrib.django.job_modules"
_TASKS, _TASK_HANDLERS = "queuepool.contrib.django.tasks.", "queuepool.contrib.django.task_handlers"
#: the module with the job of messages
MAIL_JOB = "queuepool.contrib.django.mail_job"
_DEFAULT_DATABASE = "default"
_IS_DICT = "must be a dict of sections, {'connection': {...}, 'pool': {...}}"
_Line = Entry | Problem


def source() -> Source:
    """The settings as the configuration reads them; ``BASE_DIR`` is the base of relative paths."""
    folder = Path(getattr(settings, "BASE_DIR", ""))
    manage = sys.argv[0] if sys.argv[0] not in ("", "-c") else ""
    command = (sys.executable, manage, "queuepool") if manage else Source().command
    name = f"settings.{NAME}" if hasattr(settings, NAME) else f"settings without {NAME}"
    return Source(Document(tuple(_lines(given()))), folder, name, command, "python manage.py queuepool")


def given() -> Mapping[str, Any]:
    """``QUEUEPOOL`` as it is written; empty without."""
    found = getattr(settings, NAME, {})
    return found if isinstance(found, dict) else {"": found}


def have_tasks() -> bool:
    """Whether Django's tasks go through queuepool, too."""
    return any(str(one.get("BACKEND")).startswith(_TASKS) for one in getattr(settings, "TASKS", {}).values())


def have_mail() -> bool:
    """Whether Django's e-mail goes through queuepool, too."""
    return bool(getattr(settings, "EMAIL_BACKEND", "") == MAIL_BACKEND)


def databases() -> set[str]:
    """The databases of Django's that hold a queue. The checks report what is wrong in the settings."""
    sections = [values for title, values in _sections(given()) if _kind(title) == "connection"]
    named = {str(values["database"]) for values in sections if "database" in values}
    return named if _have_place(sections) else {_DEFAULT_DATABASE}


def database_names() -> list[str]:
    """What Django calls the databases of the queues at the moment; a test's have other names."""
    known = list(connections)
    return [f"{alias} {connections[alias].settings_dict['NAME']}" for alias in sorted(databases()) if alias in known]


def _lines(given: Mapping[str, Any]) -> Iterator[_Line]:
    yield from _numbered(_unnumbered(given))


def _unnumbered(given: Mapping[str, Any]) -> Iterator[_Line]:
    sections = dict(_sections(given))
    for title in given:
        if title not in sections and title != ON_COMMIT:
            yield Problem(Place(_label(title) if title else f"settings.{NAME}"), _IS_DICT)
    has_place = _have_place([values for title, values in sections.items() if _kind(title) == "connection"])
    if not has_place and "QUEUEPOOL_CONNECTION_URL" not in os.environ:
        sections["connection"] = {"database": _DEFAULT_DATABASE} | sections.get("connection", {})
    sections["pool"] = {"modules": MODULES} | sections.get("pool", {})
    for title, values in sections.items():
        yield from _section(title, values)


def _sections(given: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((str(title), values) for title, values in given.items() if isinstance(values, dict))


def _have_place(connections: list[dict[str, Any]]) -> bool:
    return any(values.keys() & {"url", "driver", "database"} for values in connections)


def _kind(title: str) -> str:
    return title.partition(":")[0]


def _section(title: str, values: Mapping[str, Any]) -> Iterator[_Line]:
    place = Place(_label(title))
    try:
        check_header(title)
    except ValueError as error:
        yield Problem(place, str(error))
        return
    yield Entry(title, "", "", place)
    for key, value in values.items():
        if value is not None:
            yield _line(title, str(key), value, values)


def _line(title: str, key: str, value: object, others: Mapping[str, Any]) -> _Line:
    place = Place(_label(title, key))
    try:
        if _kind(title) != "connection" or key != "database":
            _check_spelling(title, key)
            raw = _raw(value)
            return Entry(title, key, _with_ours(raw) if key == "modules" else raw, place)
        if "url" in others:
            raise ValueError("contradicts url: the queue is in one place")
        return Entry(title, "url", _literally(url_of(str(value))), place)
    except ValueError as error:
        return Problem(place, str(error))


def _with_ours(modules: str) -> str:
    """The modules of a pool that names its own, and what makes jobs of the project's tasks and messages."""
    if modules == MODULES:
        return modules
    ours = [_TASK_HANDLERS] if have_tasks() else []
    return ",".join([modules, *ours, *([MAIL_JOB] if have_mail() else [])])


def _check_spelling(title: str, key: str) -> None:
    """Raises ``ValueError`` for a misspelt ``database``, which only these settings have."""
    if _kind(title) != "connection" or key in KEYS["connection"]:
        return
    if get_close_matches(key, [*KEYS["connection"], "database"], 1) == ["database"]:
        raise ValueError("unknown key; did you mean 'database'?")


def _raw(value: object) -> str:
    """The value as it is written in a file. Raises ``ValueError`` for what no file could hold."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)):
        return f"{value:.15g}"
    if isinstance(value, (list, tuple)):
        return ",".join(map(_raw, value))
    if not isinstance(value, (str, Path)):
        raise ValueError(f"is a {type(value).__name__}, not a text, a number, True or False, or a list of them")
    return _literally(str(value))


def _literally(text: str) -> str:
    """A text of Python's, in which ``${`` stands for no variable."""
    return text.replace("${", "$${")


def _label(*keys: object) -> str:
    return f"settings.{NAME}" + "".join(f"[{str(key)!r}]" for key in keys)


def _numbered(lines: Iterator[_Line]) -> Iterator[_Line]:
    """The lines, numbered in their order: errors are sorted by these numbers."""
    for number, line in enumerate(lines, 1):
        place = Place(line.place.label, number)
        if isinstance(line, Problem):
            yield Problem(place, line.text)
        else:
            yield Entry(line.section, line.key, line.value, place)
