"""Pushing calls of a registered job to the queue that ``dispatch`` uses; each unique job under its lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from queuepool.jobs.arguments import check_values
from queuepool.jobs.job_options import Options
from queuepool.jobs.limits import Limit, places_asked
from queuepool.jobs.registry import REGISTRY, arguments_for
from queuepool.jobs.sending import Sending
from queuepool.payload.limits import PlaceAsked

if TYPE_CHECKING:
    from queuepool.jobs.client import Queue
    from queuepool.jobs.following import JobId


def dispatched(
    name: str, calls: Sequence[tuple[object, Mapping[str, Any]]], sending: Sending, options: Options
) -> list[JobId]:
    """Push calls, each its payload's data and, of a unique job, its arguments by name, and return their ids.

    The id of a unique job is empty if another one holds its lock: then it was not pushed. Raises as ``Queue.push``
    does, and ``TypeError`` for arguments that a worker could not read or that give no identity.
    """
    from queuepool.jobs.connecting import default_queue  # imported here: slow, and a worker may never push

    return pushed(bound(default_queue(), sending), name, calls, sending, options)


def pushed(
    queue: Queue, name: str, calls: Sequence[tuple[object, Mapping[str, Any]]], sending: Sending, options: Options
) -> list[JobId]:
    """As ``dispatched``, to this queue, which ``bound`` has returned."""
    from queuepool.jobs.door import lock_of, terms_of  # imported here, as above
    from queuepool.jobs.following import JobId

    for data, _ in calls:
        check_values(name, data)
    terms = terms_of(name, sending.queue, sending.delay, options.track, options, options.encrypted)
    if options.limits:
        terms = terms._replace(places=[places_of(name, options.limits, data) for data, _ in calls])
    if options.unique is None:
        pushed_ids = queue.pusher.push([(name, data) for data, _ in calls], terms)
    else:
        identities = [_identity(name, options.unique, arguments) for _, arguments in calls]
        locks = (lock_of(name, identity, options.unique_for, queue.settings) for identity in identities)
        pairs = zip(locks, calls, strict=True)
        pushed_ids = [queue.pusher.push([(name, data)], terms._replace(lock=lock))[0] for lock, (data, _) in pairs]
    return [JobId(identity, queue) for identity in pushed_ids]


def bound(queue: Queue, sending: Sending) -> Queue:
    """The queue, bound to the transaction or the commit of the application's connection. Raises ``ValueError``."""
    if sending.within is None and sending.after_commit is None:
        return queue
    if sending.within is None:
        return queue.after_commit(sending.after_commit)
    if sending.after_commit is not None:
        raise ValueError("give within or after_commit, not both: a job is pushed in the transaction or after it")
    return queue.within(sending.within)


def places_of(name: str, limits: Sequence[Limit], data: object) -> Sequence[PlaceAsked]:
    """The places that this call will need. Raises ``TypeError`` if its arguments do not say."""
    handler = REGISTRY.known(name)
    target = handler.target if handler else None
    try:
        return places_asked(limits, target, *arguments_for(target, data))
    except ValueError as error:
        raise TypeError(f"{name}: {error}") from None


def _identity(name: str, template: str, arguments: Mapping[str, Any]) -> str:
    try:
        return template.format_map(arguments)
    except (LookupError, AttributeError, ValueError, TypeError) as error:
        raise TypeError(f"{name}: unique={template!r} cannot be filled in: {error!r}") from error


# Pushing from a coroutine: what ``adispatch`` adds to ``dispatch``.

#: makes the calls of a dispatch, each as ``dispatched`` takes it; called in a thread
Calls = Callable[[], Sequence[tuple[object, Mapping[str, Any]]]]


async def adispatched(name: str, calls: Calls, sending: Sending, options: Options) -> list[JobId]:
    """As ``dispatched``, awaited."""
    queue = bound(await default_queue_aside(), sending)
    return await queue.aside(lambda: pushed(queue, name, calls(), sending, options))


async def default_queue_aside() -> Queue:
    """The queue that ``dispatch`` uses; a thread makes the first one."""
    from queuepool.jobs import connecting  # imported here: slow, and a worker may never push

    if not connecting.is_configured():
        import asyncio

        # The first one reads files and imports a store's library.
        await asyncio.to_thread(connecting.default_queue)
    return connecting.default_queue()
