"""``QUEUEPOOL_EMAIL`` in Django's settings: the backend that sends, and options of the job that each message is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from queuepool.contrib.django.settings import MAIL_BACKEND
from queuepool.errors import ConfigError
from queuepool.jobs.job_options import JobOptions, options_of

NAME = "QUEUEPOOL_EMAIL"
_SMTP = "django.core.mail.backends.smtp.EmailBackend"
#: options of a job that mean nothing for a message
_NOT_HERE = ("schedule", "unique", "unique_for", "unique_id", "unique_until", "skip_if_cancelled", "around", "skip_if")


@dataclass(frozen=True, slots=True)
class MailOptions:
    """``backend``: the path of the one that sends; ``job``: the job's options as they are written."""

    backend: str
    job: JobOptions

    @classmethod
    def of(cls, given: object) -> MailOptions:
        """Raises ``ConfigError`` for an unknown option, or a wrong value."""
        if not isinstance(given, Mapping):
            raise ConfigError(f"settings.{NAME}", "must be a dict: {'backend': ..., 'queue': ..., 'tries': ...}")
        job: Any = dict(given)
        backend = job.pop("backend", _SMTP)
        _check_backend(backend)
        for key in job.keys() & set(_NOT_HERE):
            raise ConfigError(f"settings.{NAME}[{key!r}]", "is not an option of a message")
        try:
            options_of(job)
        except ConfigError as error:
            raise ConfigError(f"settings.{NAME}", str(error).removeprefix("@job: ")) from None
        return cls(backend, job)


def _check_backend(path: object) -> None:
    where = f"settings.{NAME}['backend']"
    if not isinstance(path, str) or path == MAIL_BACKEND:
        raise ConfigError(where, f"cannot be {path!r}: it is the path of the backend that sends")
    try:
        import_string(path)
    except ImportError as error:
        raise ConfigError(where, str(error)) from error


def mail_options() -> MailOptions:
    """The options of the settings. Raises ``ConfigError``."""
    return MailOptions.of(getattr(settings, NAME, {}))
