"""Imports the jobs of a project: the modules ``jobs`` and ``tasks`` of every app in ``INSTALLED_APPS``.

A worker imports this module at its boot, so that a restart also finds those that are new.
"""

from __future__ import annotations

import sys
from importlib import import_module

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from queuepool.contrib.django import settings
from queuepool.errors import ConfigError

#: of an app, as far as they are there
NAMES = ("jobs", "tasks")


def _import() -> list[str]:
    """The modules. Raises ``ConfigError`` if there are none."""
    others = [app for app in apps.get_app_configs() if app.name != __package__]
    found = [f"{app.name}.{name}" for app in others for name in NAMES if module_has_submodule(app.module, name)]
    found += [settings.MAIL_JOB] if settings.have_mail() else []
    if not found:
        raise ConfigError("INSTALLED_APPS", "no app has a module jobs or tasks, so no job is known")
    for name in found:
        import_module(name)
    if "django.tasks" in sys.modules:
        import_module("queuepool.contrib.django.task_handlers")
    return found


FOUND = _import()
