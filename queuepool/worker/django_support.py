"""What a Django application needs around its jobs. Other applications never import Django."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Awaitable
from importlib.util import find_spec

_log = logging.getLogger("queuepool")


def set_up() -> None:
    """Set up Django as ``manage.py`` does if ``DJANGO_SETTINGS_MODULE`` is set. Repeating it is harmless."""
    if os.environ.get("DJANGO_SETTINGS_MODULE") and find_spec("django"):
        import django

        django.setup()


def renew_connections() -> None:
    """Close database connections that are broken or too old, before and after each job, as Django does around requests.

    If Django is not set up, this costs one dictionary lookup.
    """
    if "django.db" in sys.modules and _is_ready():
        try:
            sys.modules["django.db"].close_old_connections()
        except Exception as error:  # noqa: BLE001 - a driver may raise anything; the job will meet it
            _log.warning("django: a connection could not be closed: %r", error)


def around(work: Awaitable[object]) -> Awaitable[object]:
    """The same around a coroutine: Django runs its queries in a thread with connections of its own."""
    return _with_new_connections(work) if "django.db" in sys.modules and _is_ready() else work


async def _with_new_connections(work: Awaitable[object]) -> object:
    from asgiref.sync import sync_to_async

    renew = sync_to_async(renew_connections)
    await renew()
    try:
        return await work
    finally:
        await renew()


def _is_ready() -> bool:
    return "django.apps" in sys.modules and bool(sys.modules["django.apps"].apps.ready)
