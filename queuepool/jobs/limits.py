"""Limits of jobs, as ``@job(limits=[...])`` declares them: how many may run at a time, or start in a while."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from functools import lru_cache
from string import Formatter
from typing import Any

from queuepool.config import values
from queuepool.config.pool_queues import MOST_PLACES
from queuepool.payload.limits import NO_PART, PlaceAsked, word_of
from queuepool.payload.strict_json import as_json

#: longest time in which starts are counted
_LONGEST = 31 * 86400.0
_PLAIN = (str, int, float, bool, list, dict, type(None))
_NAME = re.compile(r"[A-Za-z0-9_.{}:-]{1,64}")


@dataclass(frozen=True, slots=True)
class Concurrency:
    """At most ``number`` jobs with this limit run at a time, over all hosts.

    ``by``: arguments of the job in braces; each value has a limit of its own. ``fair``: whose turn it is, by such a
    value, among those that wait. Raises ``ValueError``.
    """

    name: str
    number: int
    _: KW_ONLY
    by: str = ""
    fair: str = ""

    def __post_init__(self) -> None:
        _check(self.name, self.number, self.by, self.fair)

    @property
    def seconds(self) -> float:
        """For how long a place is taken; 0.0 = for as long as the job runs."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``number`` jobs with this limit start in any ``per``: seconds, ``"1m"`` or a ``timedelta``.

    ``by`` and ``fair`` as for ``Concurrency``. Raises ``ValueError``.
    """

    name: str
    number: int
    per: float | str | timedelta
    _: KW_ONLY
    by: str = ""
    fair: str = ""

    def __post_init__(self) -> None:
        _check(self.name, self.number, self.by, self.fair)
        if not 0 < self.seconds <= _LONGEST:
            raise ValueError(f"limit {self.name}: per cannot be {self.per!r}: it is above 0 and at most 31 days")

    @property
    def seconds(self) -> float:
        """For how long a start is counted."""
        if isinstance(self.per, timedelta):
            return self.per.total_seconds()
        if isinstance(self.per, str):
            return values.seconds(self.per)
        is_number = isinstance(self.per, (int, float)) and not isinstance(self.per, bool)
        return float(self.per) if is_number else 0.0


Limit = Concurrency | Rate


def _check(name: object, number: object, by: object, fair: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"a limit cannot be named {name!r:.80}: 1 to 64 of A-Z a-z 0-9 _ . {{ }} : -")
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_PLACES:
        raise ValueError(f"limit {name}: its number cannot be {number!r}: it is from 1 to {MOST_PLACES}")
    for key, template in (("by", by), ("fair", fair)):
        if not isinstance(template, str):
            raise ValueError(f"limit {name}: {key} cannot be {template!r}: name arguments in braces, like '{{tenant}}'")
        if template and not _fields(name, key, template):
            raise ValueError(f"limit {name}: {key}={template!r} names no argument: write one in braces, '{{tenant}}'")


@lru_cache(maxsize=1024)
def _fields(name: str, key: str, template: str) -> tuple[str, ...]:
    """The arguments that a template names. Raises ``ValueError``."""
    try:
        fields = tuple(field for _, field, *_ in Formatter().parse(template) if field is not None)
    except ValueError as error:
        raise ValueError(f"limit {name}: {key}={template!r}: {error}") from None
    for field in fields:
        if not field.isidentifier():
            raise ValueError(f"limit {name}: {key}={template!r}: {{{field}}} is not the name of an argument")
    return fields


def checked_limits(given: object) -> tuple[Limit, ...]:
    """The limits in ``@job(limits=...)``. Raises ``ValueError``."""
    if not isinstance(given, (list, tuple)):
        raise ValueError(f"limits cannot be {given!r}: give a list, like [Concurrency('import', 2)]")
    for one in given:
        if not isinstance(one, (Concurrency, Rate)):
            raise ValueError(f"limits cannot have {one!r}: write Concurrency('import', 2) or Rate('mail', 100, '1m')")
    names = [one.name for one in given]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"limits has {twice[0]!r} twice")
    return tuple(given)


def check_fit(job: str, limits: Sequence[Limit], target: object, others: Iterable[tuple[str, Limit]]) -> None:
    """Raises ``ValueError`` for a limit that names an argument which the function or class ``target`` does not take,
    and for one that another job gives other numbers; ``others``: each with the name of its job.
    """
    parameters = _parameters(target) if callable(target) else {}
    for limit in limits:
        for key, template in (("by", limit.by), ("fair", limit.fair)):
            for field in _fields(limit.name, key, template) if parameters else ():
                if field not in parameters and _takes_all not in parameters.values():
                    raise ValueError(f"limit {limit.name}: {key}={template!r}: {job} has no argument {field!r}")
    known = {limit.name: limit for limit in limits}
    for other, limit in others:
        own = known.get(limit.name, limit)
        if (own.number, own.seconds) != (limit.number, limit.seconds):
            raise ValueError(f"limit {limit.name} is {_words(own)} for {job}, but {_words(limit)} for {other}")


def _words(limit: Limit) -> str:
    return f"{limit.number} in {limit.seconds:g} s" if limit.seconds else f"{limit.number} at a time"


#: the value of an argument that a call must give, and the sign of ``**kwargs``
_required, _takes_all = object(), object()


@lru_cache(maxsize=1024)
def _parameters(target: Any) -> Mapping[str, object]:
    """The parameters of a function or class in their order, each with its default."""
    found = dict[str, object]()
    for one in inspect.signature(target).parameters.values():
        if one.kind is one.VAR_KEYWORD:
            found[one.name] = _takes_all
        elif one.kind is not one.VAR_POSITIONAL:
            found[one.name] = _required if one.default is one.empty else one.default
    return found


def places_asked(
    limits: Sequence[Limit], target: object, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[PlaceAsked, ...]:
    """The places that this call needs. Raises ``ValueError``."""
    known = _Arguments(target, args, kwargs)
    return tuple(
        PlaceAsked(
            f"{one.name}={known.word(one.name, one.by)}" if one.by else one.name,
            known.word(one.name, one.fair) if one.fair else NO_PART,
            one.number,
            one.seconds,
        )
        for one in limits
    )


class _Arguments(dict[str, object]):
    """The arguments of a call by name, looked up one by one, as few are asked for."""

    def __init__(self, target: object, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        super().__init__(kwargs)
        self._target = target
        self._args = args

    def __missing__(self, name: str) -> object:
        parameters = _parameters(self._target) if callable(self._target) else {}
        place = [*parameters].index(name) if name in parameters else len(self._args)
        found = self._args[place] if place < len(self._args) else parameters.get(name, _required)
        if found is _required or found is _takes_all:
            raise KeyError(name)
        return found

    def word(self, limit: str, template: str) -> str:
        """The template filled in, as a part of a key. Raises ``ValueError``."""
        for field in _fields(limit, "by", template):
            try:
                value = self[field] = _as_json_has(self[field])
            except KeyError:
                raise ValueError(f"limit {limit}: {template!r}: the job has no argument {field!r}") from None
            if not isinstance(value, (str, int, float)):
                raise ValueError(f"limit {limit}: {field} is {value!r:.40}, where text or a number is needed")
        return word_of(template.format_map(self))


def _as_json_has(value: object) -> object:
    """The same in the program that dispatches and in the worker."""
    if type(value) not in _PLAIN:
        value = json.loads(json.dumps(value, default=as_json))
    return int(value) if isinstance(value, float) and value.is_integer() else value
