"""What a Django application needs around its jobs. In other applications Django is never imported."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec

_log = logging.getLogger("queuepool")


def set_up() -> None:
    """Set up Django as ``manage.py`` does, if ``DJANGO_SETTINGS_MODULE`` is set. May be called again."""
    if os.environ.get("DJANGO_SETTINGS_MODULE") and find_spec("django"):
        import django

        django.setup()
        _log_once()


def _log_once() -> None:
    """Remove Django's handler for ``DEBUG``: it would print again what our handler of the root logger writes."""
    logger = logging.getLogger("django")
    if logger.propagate:
        logger.handlers[:] = [one for one in logger.handlers if not _is_for_debug(one)]


def _is_for_debug(handler: logging.Handler) -> bool:
    return type(handler) is logging.StreamHandler and "RequireDebugTrue" in [
        type(one).__name__ for one in handler.filters
    ]


def renew_connections() -> None:
    """Close database connections that are broken or too old, before and after each job, as Django does around requests.

    If Django is not set up, this costs one dictionary lookup.
    """
    if "django.db" in sys.modules and _is_ready():
        try:
            sys.modules["django.db"].close_old_connections()
        except Exception as error:  # noqa: BLE001 - a driver may raise anything; the job will meet it
            _log.warning("django: a connection could not be closed: %r", error)


def renew_connections_outside_transactions() -> None:
    """The same in a test's process, where a ``TestCase`` has an open transaction that its connection must keep."""
    if "django.db" in sys.modules and _is_ready():
        for connection in sys.modules["django.db"].connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()


def around(work: Awaitable[object], renew: Callable[[], None]) -> Awaitable[object]:
    """Renew them around a coroutine: Django runs its queries in a thread that has its own connections."""
    return _with_new_connections(work, renew) if "django.db" in sys.modules and _is_ready() else work


async def _with_new_connections(work: Awaitable[object], renew: Callable[[], None]) -> object:
    from asgiref.sync import sync_to_async

    renew_there = sync_to_async(renew)
    await renew_there()
    try:
        return await work
    finally:
        await renew_there()


def around_beside(work: Awaitable[object]) -> Awaitable[object]:
    """As ``around``, for a job beside others: in a thread of its own, which ends with its connections.

    Django has one thread for all synchronous code, in which each job would wait for the others' queries.
    """
    return _in_its_own_thread(work) if "django.db" in sys.modules and _is_ready() else work


async def _in_its_own_thread(work: Awaitable[object]) -> object:
    from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async

    async with ThreadSensitiveContext() as own:
        try:
            return await work
        finally:
            if own in SyncToAsync.context_to_thread_executor:  # the job has used its thread
                await sync_to_async(sys.modules["django.db"].connections.close_all)()


def with_new_connections(call: Callable[[], object]) -> object:
    """Call it, with connections of this thread that are neither broken nor too old, before and afterwards."""
    renew_connections()
    try:
        return call()
    finally:
        renew_connections()


def _is_ready() -> bool:
    return "django.apps" in sys.modules and bool(sys.modules["django.apps"].apps.ready)
