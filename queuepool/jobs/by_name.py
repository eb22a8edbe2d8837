"""Pushes by name. If the job is registered in this process, its arguments are looked at as its dispatch does."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from queuepool.jobs.bulk import Several
from queuepool.jobs.definition import written_name
from queuepool.jobs.fitting import fitted
from queuepool.jobs.registry import REGISTRY, Handler, keywords
from queuepool.jobs.typed import check_values

#: each a name and data
Jobs = Iterable[tuple[str, object]]


class _Parameters(NamedTuple):
    """Those of a handler; ``names`` can be passed by name."""

    handler: Handler
    signature: inspect.Signature
    names: set[str]
    required: set[str]


def _is_pair(job: object) -> bool:
    return isinstance(job, (tuple, list)) and len(job) == 2


#: what ``Queue.bulk`` takes
PAIRS = Several("bulk", "(name, data)", _is_pair)
#: by the job's name: an inspection takes longer than a push
_known: dict[str, _Parameters] = {}


def checked(jobs: Jobs) -> list[tuple[str, object]]:
    """The jobs, each a name and data. Raises ``TypeError`` for arguments that do not fit, and for what is no job.

    Only a job under its own name, ``module.function``, or an alias is looked at: a name that was given by hand may be
    that of another service's job, or of PHP's. Data that is no object is pushed as it is: it has no names to compare.
    """
    pairs = PAIRS.checked(jobs)
    for name, data in pairs:
        _check(name, data)
    return pairs


def _check(name: str, data: object) -> None:
    handler = REGISTRY.known(name)
    if handler is None or handler.target is None or not _is_own(name, handler):
        return
    if data is not None and not isinstance(data, Mapping):
        return
    given, parameters = data or {}, _parameters_of(handler)
    if not parameters.required <= given.keys() <= parameters.names:  # the usual push skips it
        try:
            fitted(parameters.signature, (), given)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
    check_values(name, given)


def _is_own(name: str, handler: Handler) -> bool:
    return name == written_name(handler.target) or name in handler.options.aliases


def _parameters_of(handler: Handler) -> _Parameters:
    known = _known.get(handler.name)
    if known is None or known.handler is not handler:
        signature = inspect.signature(handler.target)
        known = _known[handler.name] = _Parameters(handler, signature, *keywords(signature))
    return known
