"""The job that sends a message. A pool imports it if ``EMAIL_BACKEND`` is ours."""

from __future__ import annotations

from typing import Any

from django.core.mail import get_connection

from queuepool.contrib.django.mail_message import read
from queuepool.contrib.django.mail_options import mail_options
from queuepool.jobs.decorator import job


@job("queuepool.contrib.django.mail", **mail_options().job)
def send(message: dict[str, Any]) -> None:
    """Send it by the real backend, whose error is the job's."""
    get_connection(mail_options().backend).send_messages([read(message)])
