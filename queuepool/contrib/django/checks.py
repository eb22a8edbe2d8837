"""System checks: ``manage.py check`` names what is wrong in ``QUEUEPOOL``."""

from __future__ import annotations

from typing import Any

from django.core.checks import Error, register

from queuepool.config.loader import load
from queuepool.contrib.django import settings
from queuepool.contrib.django.transactions import watched
from queuepool.errors import ConfigError


@register  # type: ignore[untyped-decorator]
def check_mail(**_: Any) -> list[Any]:
    """An error for what is wrong in the options of the e-mail backend, if it is used."""
    if not settings.have_mail():
        return []
    from queuepool.contrib.django.mail_options import (
        mail_options,
    )  # imported here: most projects send their mail themselves

    try:
        mail_options()
    except ConfigError as error:
        return [Error(str(error), id="queuepool.E003")]
    return []


@register  # type: ignore[untyped-decorator]
def check_settings(**_: Any) -> list[Any]:
    """An error for each problem of the settings; opens nothing."""
    return [Error(line, id="queuepool.E001") for line in _problems()]


def _problems() -> list[str]:
    found = []
    for step in (lambda: load(None), watched):
        try:
            step()
        except ConfigError as error:
            found += str(error).split("\n")
    return found
