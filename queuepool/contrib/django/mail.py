"""An e-mail backend: each message is a job, which a worker sends by the backend that really sends.

EMAIL_BACKEND = "queuepool.contrib.django.mail.EmailBackend"
QUEUEPOOL_EMAIL = {"backend": "django.core.mail.backends.smtp.EmailBackend", "queue": "mail", "tries": 5, "backoff": 60}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.core.mail.backends.base import BaseEmailBackend

from queuepool.contrib.django.mail_message import written
from queuepool.errors import ConfigError, StoreError

_APP = "queuepool.contrib.django"


class EmailBackend(BaseEmailBackend):  # type: ignore[misc]
    """Pushes messages. Inside of ``atomic()`` they are part of the transaction, as every dispatch is."""

    def __init__(self, fail_silently: bool = False, **options: Any) -> None:
        super().__init__(fail_silently=fail_silently, **options)
        if not apps.is_installed(_APP):
            raise ConfigError("EMAIL_BACKEND", f"needs {_APP!r} in INSTALLED_APPS")

    def send_messages(self, email_messages: Sequence[Any]) -> int:
        """Push those that have recipients; returns how many that are.

        Raises what Django raises for a message that cannot be sent, ``TypeError`` for one that no payload can hold,
        and, unless ``fail_silently``, ``StoreError``.
        """
        from queuepool.contrib.django.mail_job import send  # imported here: it needs the settings

        calls = [{"message": written(message)} for message in email_messages if message.recipients()]
        try:
            return len(send.bulk(calls)) if calls else 0
        except StoreError:
            if not self.fail_silently:
                raise
            return 0
