"""The e-mail backend for Django: a message is a job, and what a worker sends is what Django would have sent itself."""

from __future__ import annotations

from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("django")

from tests.support.django_project import LIBRARIES, Project, migrated, project_in

pytestmark = pytest.mark.libraries(*LIBRARIES)

#: a real backend, which writes files
FILES = "django.core.mail.backends.filebased.EmailBackend"
MAIL = {"backend": FILES, "queue": "mail", "tries": 2, "backoff": 30}
MESSAGES = """
from email.mime.image import MIMEImage
from django.core.mail import EmailMessage, EmailMultiAlternatives, get_connection, send_mail
from django.db import transaction
from django.utils.translation import gettext_lazy
from queuepool import connect

def shown(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, str(error).partition(" (")[0])

plain = EmailMessage(gettext_lazy("Ärger, Grüße"), "Hëllo\\n.\\nFrom here", "a@example.org", ["b@example.org"],
    bcc=["hidden@example.org"], cc=["c@example.org"], reply_to=["r@example.org"], headers={"X-Mine": "1"})
html = EmailMultiAlternatives("s", "text", None, ["Bö <b@example.org>"])
html.attach_alternative("<b>text</b>", "text/html")
html.attach("a.txt", "tëxt", "text/plain")
html.attach("a.bin", bytes(range(256)), "application/octet-stream")
image = MIMEImage(b"GIF89a", "gif")
image.add_header("Content-ID", "<logo>")
html.attach(image)
page = EmailMessage("s", "<p>only</p>", to=["b@example.org"])
page.content_subtype = "html"
page.encoding = "iso-8859-1"
nobody = EmailMessage("s", "b")
ALL = [plain, html, page, nobody]
"""


@pytest.fixture
def project(tmp_path) -> Project:
    about: dict[str, Any] = {"EMAIL_BACKEND": "queuepool.contrib.django.mail.EmailBackend", "QUEUEPOOL_EMAIL": MAIL}
    return migrated(project_in(tmp_path, EMAIL_FILE_PATH=str(tmp_path / "sent"), **about))


def sent(folder: Path) -> list[Any]:
    """What the messages say, without what differs each time."""
    texts = [part for file in sorted(folder.iterdir()) for part in file.read_bytes().split(b"\n" + b"-" * 79 + b"\n")]
    return [_said(message_from_bytes(text)) for text in texts if text.strip()]


def _said(message: Message) -> Any:
    headers = [(name, value) for name, value in message.items() if name not in ("Date", "Message-ID")]
    if not message.is_multipart():
        return headers, message.get_payload(decode=True)
    headers = [(name, value.partition("boundary=")[0]) for name, value in headers]
    return headers, [_said(part) for part in message.get_payload()]


def test_a_worker_sends_what_django_would_have_sent(project):
    direct = f"get_connection({FILES!r}, file_path='direct').send_messages(ALL[:3])\n"
    queued = """
import json
from queuepool.contrib.django.mail_message import read, written
print(get_connection().send_messages(ALL), connect().size("mail"))
print([read(json.loads(json.dumps(written(one)))).recipients() == one.recipients() for one in ALL])
"""
    assert "3 3\n[True, True, True, True]\n" == project.python(MESSAGES + direct + queued)
    assert not (project.path / "sent").exists()

    project.work("--queue", "mail")

    expected = sent(project.path / "direct")
    assert 3 == len(expected)
    assert sorted(map(str, expected)) == sorted(map(str, sent(project.path / "sent")))


def test_a_message_is_part_of_the_transaction_and_what_is_wrong_with_it_is_said_where_it_is_sent(project):
    program = """
class Own(EmailMessage):
    def message(self):
        return super().message()

class Unwritable:
    pass

with transaction.atomic():
    send_mail("lost", "b", None, ["b@example.org"])
    transaction.set_rollback(True)
send_mail("kept", "b", None, ["b@example.org"])
shown(lambda: EmailMessage("two\\nlines", "b", to=["b@example.org"]).send())
shown(lambda: Own("s", "b", to=["b@example.org"]).send())
odd = EmailMessage("s", "b", to=["b@example.org"])
odd.metadata = Unwritable()
shown(odd.send)
print(connect().size("mail"))
from django.db import connection
connection.cursor().execute("ALTER TABLE jobs RENAME TO gone")
shown(lambda: send_mail("s", "b", None, ["b@example.org"], fail_silently=True))
shown(lambda: send_mail("s", "b", None, ["b@example.org"]))
"""
    header, own, odd, size, silent, loud = project.python(MESSAGES + program).splitlines()

    assert "BadHeaderError" in header
    assert "TypeError a Own makes its own MIME message, which a payload cannot hold" in own
    assert "NotSendable" in odd
    assert ("1", "0") == (size, silent)
    assert loud.startswith("TableMissing")


@pytest.mark.thorough("Django starts several times; a message is a job, as the first test shows")
def test_a_message_that_cannot_be_sent_is_retried_as_a_job_is(project):
    project.python("from django.core.mail import send_mail\nsend_mail('s', 'b', None, ['b@example.org'])")
    (project.path / "sent").write_text("a file in the place of its directory")

    project.work("--queue", "mail")

    assert "1" == project.python("from queuepool import connect\nprint(connect().sizes('mail').delayed)").strip()


@pytest.mark.thorough("Django starts several times; the first test sends one without modules")
def test_a_pool_that_names_its_modules_sends_messages_too_and_an_app_needs_no_jobs_for_it(project):
    (project.path / "shop/jobs.py").unlink()
    project.python("from django.core.mail import send_mail\nsend_mail('s', 'b', None, ['b@example.org'])")
    project.work("--queue", "mail")
    assert 1 == len(sent(project.path / "sent"))

    text = (project.path / "site_settings.py").read_text()
    (project.path / "site_settings.py").write_text(text + "QUEUEPOOL = {'pool': {'modules': ['shop.models']}}\n")
    project.python("from django.core.mail import send_mail\nsend_mail('s', 'b', None, ['b@example.org'])")
    project.work("--queue", "mail")
    assert 2 == len(sent(project.path / "sent"))


def test_wrong_options_are_told_by_djangos_check(project):
    program = """
from django.conf import settings
from django.core.checks import run_checks
OURS = "queuepool.contrib.django.mail.EmailBackend"
for options in ({"queu": "mail"}, {"tries": "x"}, {"backend": OURS}, {"backend": "shop.nothing.Backend"},
                {"unique": "{message}"}, "mail"):
    settings.QUEUEPOOL_EMAIL = options
    print([error.msg for error in run_checks() if error.id == "queuepool.E003"])
"""
    lines = project.python(program).splitlines()
    expected = [
        "settings.QUEUEPOOL_EMAIL: there is no option 'queu': did you mean 'queue'?",
        "settings.QUEUEPOOL_EMAIL: tries cannot be 'x'",
        "it is the path of the backend that sends",
        "settings.QUEUEPOOL_EMAIL['backend']: ",
        "settings.QUEUEPOOL_EMAIL['unique']: is not an option of a message",
        "settings.QUEUEPOOL_EMAIL: must be a dict",
    ]

    assert [] == [(problem, line) for problem, line in zip(expected, lines, strict=True) if problem not in line]
