"""What a Django application needs around its jobs, where there is one: Django is never imported for it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Awaitable
from importlib.util import find_spec

_log = logging.getLogger("queuepool")


def set_up() -> None:
    """As ``manage.py`` does: with ``DJANGO_SETTINGS_MODULE`` set, models can be imported. Again is harmless."""
    if os.environ.get("DJANGO_SETTINGS_MODULE") and find_spec("django"):
        import django

        django.setup()


def renew_connections() -> None:
    """Before and after each job, as around each request: close the connections that are broken or too old.

    Without a Django that is set up this is one look into a dict.
    """
    if "django.db" in sys.modules and _is_ready():
        try:
            sys.modules["django.db"].close_old_connections()
        except Exception as error:  # noqa: BLE001 - a database's driver may raise anything; the job will find out
            _log.warning("django: a connection could not be closed: %r", error)


def around(work: Awaitable[object]) -> Awaitable[object]:
    """The same for a coroutine, whose queries Django runs in a thread with connections of its own."""
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
