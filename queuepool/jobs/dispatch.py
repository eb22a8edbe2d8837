"""Pushing calls of a registered job to the queue that ``dispatch`` uses, unique ones each under its lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from queuepool.jobs.job_options import Options, wire

if TYPE_CHECKING:
    from queuepool.jobs.client import Delay


def dispatched(
    name: str, calls: Sequence[tuple[object, Mapping[str, Any]]], queue: str, delay: Delay, options: Options
) -> list[str]:
    """Push calls, each its payload's data and its arguments by name, and return their ids.

    The id of a unique job is empty if another one holds its lock: then it was not pushed. Raises as ``Queue.push``
    does, and ``TypeError`` for arguments of which no identity can be made.
    """
    from queuepool.jobs.client import default_queue  # imported here: slow, and a worker may never push

    about: dict[str, Any] = {"queue": queue, "delay": delay, "options": wire(options), "encrypted": options.encrypted}
    if options.unique is None:
        return default_queue().bulk([(name, data) for data, _ in calls], **about)
    about["unique_for"] = options.unique_for
    identities = [_identity(name, options.unique, arguments) for _, arguments in calls]
    return [
        default_queue().push(name, data, unique_id=identity, **about)
        for identity, (data, _) in zip(identities, calls, strict=True)
    ]


def _identity(name: str, template: str, arguments: Mapping[str, Any]) -> str:
    try:
        return template.format_map(arguments)
    except (LookupError, AttributeError, ValueError, TypeError) as error:
        raise TypeError(f"{name}: unique={template!r} cannot be filled in: {error!r}") from error
