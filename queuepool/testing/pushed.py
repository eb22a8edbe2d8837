"""One pushed job, as a test sees it."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queuepool.errors import BadPayload, UnknownJob
from queuepool.jobs.diversion import Push
from queuepool.jobs.fitting import fitted
from queuepool.jobs.registry import REGISTRY, arguments_of
from queuepool.payload.envelope import decode
from queuepool.payload.unique_locks import name_of

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = 10


@dataclass(frozen=True, slots=True)
class PushedJob:
    """What was pushed.

    ``args`` and ``kwargs`` are the very objects that were given. Arguments that the job takes by name are in
    ``kwargs``, also if they were given by position; those that it takes by position alone are in ``args``.
    """

    id: str
    #: of the job, or of the PHP class; of ``push_raw`` the one in the payload, if it has one
    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    queue: str
    #: seconds
    delay: float
    #: those that were given, as the payload's fields: ``maxTries``, ``timeout`` …
    options: Mapping[str, object]
    encrypted: bool
    #: the identity of its unique lock; ``None`` = it is not unique
    unique_id: str | None
    #: the payload that ``push_raw`` was given
    raw: bytes | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """All arguments by name, those that were left out with their defaults; ``kwargs`` if the job is unknown here.

        A push by name may also have a list that does not fit, which only the worker finds; then ``args`` alone has it.
        """
        try:
            return by_name(self.name, self.args, self.kwargs)
        except TypeError:
            return self.kwargs

    def __str__(self) -> str:
        about = {"queue": self.queue, "delay": f"{self.delay:g}" if self.delay else "", "unique_id": self.unique_id}
        words = [f"{key}={value}" for key, value in about.items() if value]
        call = call_text(self.name, self.args, self.kwargs) if self.raw is None else call_text("raw", [self.raw], {})
        return " ".join([call, *words, *["encrypted"] * self.encrypted])


def by_name(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call, by the parameters of the registered job. Raises ``TypeError`` if they do not fit."""
    target = target_of(name)
    if target is None:
        return kwargs
    signature = inspect.signature(target)
    bound = fitted(signature, args, kwargs)
    bound.apply_defaults()
    names = dict(bound.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            names |= names.pop(parameter.name)
    return names


def target_of(name: str) -> Any:
    """The function or class of a registered job; ``None`` if it has none, or is not registered."""
    try:
        return REGISTRY.find(name).target
    except UnknownJob:
        return None


def call_text(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """``name(1, b=2)``, long values shortened."""
    words = [_SHORT.repr(value) for value in args]
    return f"{name}({', '.join([*words, *(f'{key}={_SHORT.repr(value)}' for key, value in kwargs.items())])})"


def pushed_jobs(push: Push) -> list[PushedJob]:
    """The jobs of one push."""
    return [_pushed_job(push, identity, *job) for identity, job in zip(push.ids, push.jobs, strict=True)]


def _pushed_job(push: Push, identity: str, name: str, data: object) -> PushedJob:
    raw = data if isinstance(data, bytes) and not name else None
    args, kwargs = ([], {}) if raw is not None else arguments_of(_as_in_json(data))
    terms = push.terms
    options = {key: value for key, value in terms.options.items() if value not in (None, False)}
    unique_id = None if terms.lock is None else terms.lock.name.removeprefix(name_of(name, ""))
    identity, name = (identity, name) if raw is None else _named_in(raw)
    return PushedJob(
        identity, name, args, kwargs, terms.queue, terms.delay, options, terms.encrypted, unique_id, raw
    )  # fmt: skip


def _as_in_json(data: object) -> object:
    """The data with the outermost type that it gets in the payload; what is in it stays as it is."""
    if isinstance(data, Mapping):
        return dict(data)
    return list(data) if isinstance(data, tuple) else data


def _named_in(raw: bytes) -> tuple[str, str]:
    """Id and name in a payload; empty if it is none."""
    try:
        payload = decode(raw)
    except BadPayload:
        return "", ""
    return payload.id, payload.name
