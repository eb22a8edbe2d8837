"""A Django project in a directory, run by its ``manage.py`` as its owner would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from tests.support import warm
from tests.support.eventually import eventually
from tests.support.lines import whole_lines

ROOT = Path(__file__).parents[2]
#: for the mark ``libraries``: most of what such a project imports, as far as it can be without settings
LIBRARIES = (
    "django.core.management.commands.migrate", "django.core.management.commands.test",
    "django.db.backends.sqlite3.base", "django.db.migrations.writer", "django.middleware.csrf", "django.test",
    "django.utils.translation.reloader",
)  # fmt: skip
MANAGE = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
if __name__ == "__main__":
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
"""
SETTINGS = """
from pathlib import Path
import pymysql
pymysql.version_info = (2, 2, 7, "final", 0)  # it stands in for mysqlclient, of which Django asks that version
pymysql.install_as_MySQLdb()
BASE_DIR = Path(__file__).parent
SECRET_KEY = "k"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "queuepool.contrib.django", "shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""
MODELS = """
from django.db import models

class Order(models.Model):
    name = models.CharField(max_length=50)
"""
JOBS = """
from queuepool import current, job
from shop.models import Order
from tests.support.poolapp import note

@job
def send(order: int) -> None:
    note(event="sent", name=Order.objects.get(pk=order).name, id=current().id)

@job
async def asend(order: int) -> None:
    note(event="sent", name=(await Order.objects.aget(pk=order)).name, id=current().id)

@job(track="1h")
def counted() -> int:
    return Order.objects.count()
"""
DATABASE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.sqlite3"}


@dataclass
class Project:
    """A project with one app, ``shop``."""

    path: Path

    def write(self, **settings: Any) -> None:
        """Write the settings, these among them."""
        lines = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
        (self.path / "site_settings.py").write_text(SETTINGS + lines)

    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "TRAIL": str(self.path / "trail")}

    def manage(self, *words: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run ``manage.py`` to its end."""
        command = [sys.executable, "manage.py", *words]
        done = warm.run(command, cwd=self.path, env=self.env(), capture_output=True, text=True, timeout=100, **more)
        assert not check or done.returncode == 0, done.stderr
        return done

    def python(self, program: str, check: bool = True) -> str:
        """Run a program in the project, with Django set up; returns what it prints."""
        lines = f"import os, django\nos.environ['DJANGO_SETTINGS_MODULE'] = 'site_settings'\ndjango.setup()\n{program}"
        (self.path / "program.py").write_text(lines)
        command = [sys.executable, "program.py"]
        done = warm.run(command, cwd=self.path, env=self.env(), capture_output=True, text=True, timeout=100)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if check else done.stdout + done.stderr

    def work(self, *flags: str) -> None:
        """Run what waits."""
        self.manage("queuepool", "work", "--stop-when-empty", *flags)

    def notes(self) -> list[dict[str, Any]]:
        """What the jobs noted."""
        return [json.loads(line) for line in whole_lines(self.path / "trail")]

    def size(self, queue: str = "default") -> int:
        """How many jobs are in the queue, without the verb, which is executed: a tenth of its cost."""
        return int(self.python(f"from queuepool import connect\nprint(connect().size({queue!r}))"))

    @contextmanager
    def pool(self, *flags: str) -> Iterator[warm.Process | subprocess.Popen[bytes]]:
        """A pool, started by ``manage.py``; ended by SIGTERM."""
        command = [sys.executable, "manage.py", "queuepool", "start", "--runtime-dir", str(self.path / "run"), *flags]
        with (self.path / "log").open("wb") as log:
            process = warm.start(command, cwd=self.path, env=self.env(), stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            eventually(lambda: process.poll() is not None)


def project_in(folder: Path, **settings: Any) -> Project:
    """A new project, whose tables are made."""
    (folder / "shop").mkdir()
    files = {"manage.py": MANAGE, "shop/__init__.py": "", "shop/models.py": MODELS, "shop/jobs.py": JOBS}
    for name, text in files.items():
        (folder / name).write_text(text)
    project = Project(folder)
    project.write(**{"DATABASES": {"default": DATABASE}, **settings})
    return project


def migrated(project: Project) -> Project:
    """The project with its tables in the SQLite file, which is made once and copied: Django takes seconds to make it.

    A project with other apps that have tables, or in another database, calls ``manage.py migrate`` itself.
    """
    (project.path / DATABASE["NAME"]).write_bytes(_empty_database())
    return project


@cache
def _empty_database() -> bytes:
    with tempfile.TemporaryDirectory(prefix="queuepool-django-") as folder:
        project = project_in(Path(folder))
        project.manage("migrate", "--run-syncdb")
        return (project.path / DATABASE["NAME"]).read_bytes()


def settings_on(kind: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Django's settings for an empty database of this brand; or, for ``redis``, for a queue there."""
    if kind == "mariadb":
        return {"DATABASES": {"default": mysql_entry(request.getfixturevalue("mariadb_url"))}}
    if kind == "postgres":
        return {"DATABASES": {"default": postgres_entry(request.getfixturevalue("postgres_url"))}}
    if kind == "redis":
        request.getfixturevalue("server")
        return {"QUEUEPOOL": {"connection": {"url": request.getfixturevalue("redis_url")}}}
    return {}


def postgres_entry(url: str) -> dict[str, Any]:
    """The entry of ``DATABASES`` for this URL."""
    parsed = make_url(url)
    about = {"NAME": parsed.database, "USER": parsed.username, "HOST": parsed.query["host"]}
    return {"ENGINE": "django.db.backends.postgresql", **about}


def mysql_entry(url: str) -> dict[str, Any]:
    """The same of MySQL and MariaDB."""
    parsed = make_url(url)
    about = {"NAME": parsed.database, "USER": parsed.username, "HOST": parsed.query["unix_socket"]}
    return {"ENGINE": "django.db.backends.mysql", **about}
