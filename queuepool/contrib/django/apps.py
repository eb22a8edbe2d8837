"""The app: what it sets up when Django starts. It reads no settings before they are needed."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core.signals import setting_changed
from django.db.models.signals import post_migrate

from queuepool.config import application
from queuepool.contrib.django import dispatching, settings, tables


class QueuepoolConfig(AppConfig):  # type: ignore[misc]
    """``queuepool.contrib.django`` in ``INSTALLED_APPS``."""

    name = "queuepool.contrib.django"
    label = "queuepool"
    verbose_name = "queuepool"

    def ready(self) -> None:
        """Make the settings those of this process, and dispatches part of Django's transactions."""
        from queuepool.contrib.django import checks  # noqa: F401 - registers them

        if settings.have_tasks():
            import django.tasks.checks  # noqa: F401 - Django itself registers these with the first import of its tasks

        application.provide(settings.source)
        dispatching.begin()
        post_migrate.connect(tables.make_tables, sender=self)
        setting_changed.connect(_renew)


def _renew(*, setting: str, **_: Any) -> None:
    """A test has changed a setting."""
    if setting in (settings.NAME, "DATABASES"):
        dispatching.renew()
