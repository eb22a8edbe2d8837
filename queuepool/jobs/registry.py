"""Handlers by name, and the arguments that fit them. A payload runs only the handler registered under exactly its name.

If arguments do not fit, the error names all of them; Python's own names only the first.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import BoundArguments, Parameter, Signature
from typing import Any, Protocol

from queuepool.errors import BadArguments, ConfigError, UnknownJob
from queuepool.jobs.definition import check_job_name
from queuepool.jobs.job_options import Options
from queuepool.jobs.limits import check_fit
from queuepool.payload.wrappers import Offer
from queuepool.unix.escape import first_of

#: converts a payload's positional and keyword arguments; raises ``TypeError``
Read = Callable[[Sequence[Any], Mapping[str, Any]], tuple[list[Any], dict[str, Any]]]
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_ANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Task(Protocol):
    """A handler with its arguments: what one attempt runs."""

    def run(self) -> object:
        """Do the work; a coroutine that it returns runs on the worker's event loop."""

    @property
    def after_succeeded(self) -> Callable[[], object] | None:
        """The success hook; ``None`` if there is none."""

    def after_failed(self, error: BaseException) -> object:
        """Call the failure hook, if there is one."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered job. ``bind`` takes keyword or positional arguments; raises ``TypeError`` for wrong ones.

    ``target`` is the function or class whose annotations define the arguments.
    """

    name: str
    bind: Callable[..., Task]
    options: Options
    target: Any = None

    @property
    def is_async(self) -> bool:
        """Whether its call returns a coroutine."""
        return inspect.iscoroutinefunction(getattr(self.target, "handle", self.target))


class Registry:
    """Handlers by exact name."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        #: by former names
        self._aliases: dict[str, Handler] = {}
        #: names of ``Job`` classes that cannot be jobs: the bases of others, or unfinished
        self.without_handle: set[str] = set()
        #: each registers the jobs that a framework defines without ``@job``; only tests call them, for an unknown name
        self.sources: list[Callable[[], object]] = []

    def add(self, handler: Handler) -> None:
        """Register a handler, also under its aliases. Raises ``ConfigError`` if a name is invalid or taken."""
        check_job_name(handler.name)
        for name in (handler.name, *handler.options.aliases):
            if other := self.known(name):
                was = f", which is an alias of {other.name!r}" if name != other.name else ""
                raise ConfigError("@job", f"two jobs are registered as {name!r}{was}")
        if handler.options.limits:
            self._check_limits(handler)
        self._handlers[handler.name] = handler
        self._aliases |= dict.fromkeys(handler.options.aliases, handler)

    def _check_limits(self, handler: Handler) -> None:
        others = ((name, limit) for name, other in self._handlers.items() for limit in other.options.limits)
        try:
            check_fit(handler.name, handler.options.limits, handler.target, others)
        except ValueError as error:
            raise ConfigError("@job", str(error)) from None

    def find(self, name: str) -> Handler:
        """The handler with this name or alias. Raises ``UnknownJob``."""
        found = self._handlers.get(name) or self._aliases.get(name)
        if found is None:
            raise UnknownJob(name, "handle()" if name in self.without_handle else "")
        return found

    def known(self, name: object) -> Handler | None:
        """The handler with this name or alias; ``None`` if there is none."""
        return self._handlers.get(name) or self._aliases.get(name) if isinstance(name, str) else None

    def names(self) -> list[str]:
        """All names, sorted, without aliases."""
        return sorted(self._handlers)

    def scheduled(self) -> list[Handler]:
        """The handlers that declare a schedule, by name."""
        return [self._handlers[name] for name in self.names() if self._handlers[name].options.schedule is not None]


def bound(handler: Handler, data: object, read: Read | None = None) -> Task:
    """The task for a payload's data, passed to the handler as in ``arguments_of``.

    ``read`` converts the arguments to the types of the handler's annotations. Raises ``BadArguments``.
    """
    args, kwargs = arguments_for(handler.target, data)
    try:
        if read is not None:
            args, kwargs = read(args, kwargs)
        return handler.bind(*args, **kwargs)
    except (TypeError, RecursionError) as error:
        raise BadArguments(handler.name, f"{error}{_left_out(handler, kwargs)}") from error


def _left_out(handler: Handler, given: Mapping[str, Any]) -> str:
    """Why a PHP object job may lack an argument; empty for any other error.

    Source: Queue/SerializesModels.php, __serialize (13.x).
    """
    is_php = "\\" in handler.name and "@" not in handler.name and handler.target
    if not is_php or keywords(inspect.signature(handler.target))[1] <= given.keys():
        return ""
    return "; PHP omits properties that have their default values (SerializesModels): give the parameter that default"


def arguments_for(target: Any, data: object) -> tuple[list[Any], dict[str, Any]]:
    """As ``arguments_of``; of an ``Offer``, only what this function or class takes."""
    return ([], _taken(target, data)) if type(data) is Offer and target else arguments_of(data)


def _taken(target: Any, offer: Offer) -> dict[str, Any]:
    """The offered arguments for which this function or class has a parameter."""
    signature = inspect.signature(target)
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in signature.parameters.values()):
        return offer
    names, _ = keywords(signature)
    return {name: value for name, value in offer.items() if name in names}


def by_name(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
    """The ``data`` of this call: arguments by name, or a list if the function takes positional-only ones or ``*args``.

    Raises ``TypeError`` for arguments that do not fit.
    """
    signature = inspect.signature(function)
    given = fitted(signature, args, kwargs)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if given.args and kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}:
        if given.kwargs:
            raise TypeError(
                f"{function.__qualname__} takes positional arguments: a job cannot combine them with keywords"
            )
        return list(given.args)
    names = dict(given.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            names |= names.pop(parameter.name, {})
    return names


def keywords(signature: inspect.Signature) -> tuple[set[str], set[str]]:
    """The parameters that can be passed by name, and those of them that are required."""
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters.values()
    names = {one.name for one in parameters if one.kind in by_keyword}
    required = {
        one.name
        for one in parameters
        if one.default is one.empty
        and one.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    }
    return names, required


def arguments_of(data: object) -> tuple[list[Any], dict[str, Any]]:
    """A call's arguments from a payload's data: an object by keyword, a list by position, none for ``""`` and null."""
    if data is None or data == "":
        return [], {}
    if isinstance(data, dict):
        return [], data
    return (data, {}) if isinstance(data, list) else ([data], {})


#: the handlers of this process; ``@job`` and ``Job`` add to it
REGISTRY = Registry()
# Warnings of jobs that would never run, as no pool serves their queue or no module registers them, or run in threads.

#: the queue of jobs that name none; a dispatch may choose another
DEFAULT = "default"
#: most job names in one warning
_MAX_NAMES = 3
NO_MODULES = "no modules are configured, so no jobs are known: set modules = app.jobs, or pass --modules app.jobs"


def unserved(registry: Registry, served: Collection[str], present: Sequence[str], place: str = "") -> list[str]:
    """A warning for each queue that a registered job names and that is not ``served``.

    ``present``: the queues of a pool to which it can be added; ``place`` names that pool.
    """
    jobs: dict[str, list[str]] = defaultdict(list)
    for name in registry.names():
        queue = registry.find(name).options.queue or DEFAULT
        if queue not in served and queue != DEFAULT:
            jobs[queue].append(name)
    together = ",".join(dict.fromkeys((*present, *jobs)))
    return [f"{_words(queue, names)}; set queue = {together}{place}" for queue, names in jobs.items()]


def unregistered(registry: Registry, wanted: Mapping[str, str]) -> list[tuple[str, str]]:
    """The name of each schedule whose job no module registers, with a warning; ``wanted``: jobs by schedule."""
    return [(name, _unknown(registry, job)) for name, job in wanted.items() if registry.known(job) is None]


def limited(registry: Registry, queues: Collection[str]) -> str:
    """The first registered job with limits that runs in one of these queues unless a dispatch chooses another."""
    options = ((name, registry.find(name).options) for name in registry.names())
    return next((name for name, has in options if has.limits and (has.queue or DEFAULT) in queues), "")


def in_threads(registry: Registry) -> list[str]:
    """A warning, if there are any, of the jobs that a worker with a concurrency above 1 runs in threads."""
    names = [name for name in registry.names() if not registry.find(name).is_async]
    if not names:
        return []
    those = f"{len(names)} plain functions run" if len(names) > 1 else "1 plain function runs"
    return [
        f"{those} in threads, beside coroutines ({first_of(names, _MAX_NAMES)}): they must be safe for that, no"
        " soft_timeout interrupts them, and one that runs past its deadline ends its worker, whose other jobs run"
        " again; a pool with concurrency = 1 ends it alone"
    ]


def _unknown(registry: Registry, job: str) -> str:
    if job in registry.without_handle:
        return f"its job {job} has no handle(): each run will fail in workers with these modules"
    return f"no module registers its job {job}: each run will fail as unknown in workers with these modules"


def _words(queue: str, names: list[str]) -> str:
    return (
        f"no pool in this configuration serves queue {queue}: its jobs wait forever unless another pool does"
        f" ({first_of(names, _MAX_NAMES)})"
    )


def fitted(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
    """``signature.bind``. Raises ``TypeError``."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        missing, unknown = _missing(signature, args, kwargs), _unexpected(signature, kwargs)
        if len(missing) + len(unknown) < 2:
            raise
        words = "; ".join(filter(None, [_words_on(missing), *(_words_on_unexpected(one, missing) for one in unknown)]))
        raise TypeError(words) from error


def _missing(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    parameters = [one for one in signature.parameters.values() if one.kind not in _ANY]
    by_place = [one.name for one in parameters if one.kind in _BY_PLACE][: len(args)]
    return [
        one.name
        for one in parameters
        if one.default is one.empty and one.name not in by_place and one.name not in kwargs
    ]


def _unexpected(signature: Signature, kwargs: Mapping[str, Any]) -> list[str]:
    parameters = signature.parameters.values()
    if any(one.kind is Parameter.VAR_KEYWORD for one in parameters):
        return []
    names = {one.name for one in parameters if one.kind in _BY_NAME}
    return [name for name in kwargs if name not in names]


def _words_on(missing: Sequence[str]) -> str:
    if len(missing) < 2:
        return "".join(f"missing a required argument: {one!r}" for one in missing)
    return f"missing required arguments: {', '.join(map(repr, missing))}"


def _words_on_unexpected(name: str, missing: Sequence[str]) -> str:
    close = get_close_matches(name, missing, 1)
    return f"got an unexpected keyword argument {name!r}" + (f": did you mean {close[0]!r}?" if close else "")
