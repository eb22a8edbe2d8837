"""A Django application is set up by the name of its settings; its connections are renewed around each job."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from tests.support.eventually import eventually

pytest.importorskip("django")

SETTINGS = """
DATABASES = {{"default": {{
    "ENGINE": "django.db.backends.postgresql", "NAME": {name!r}, "USER": {user!r}, "HOST": {host!r},
    "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True,
}}}}
INSTALLED_APPS = ["shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
"""
JOBS = """
from asgiref.sync import sync_to_async
from django.db import connection, models
from tests.support.poolapp import note
from queuepool import job


class Order(models.Model):  # cannot be defined before the settings are there
    pass


def ask(which):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        note(event="end", which=which, backend=cursor.fetchone()[0])


@job
def plain() -> None:
    ask("plain")


@job
async def in_a_coroutine() -> None:
    await sync_to_async(ask)("coroutine")
"""
KILL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
def django(site, postgres_url, monkeypatch):
    """A site with a Django project in it."""
    url = make_url(postgres_url)
    where = {"name": url.database, "user": url.username, "host": url.query["host"]}
    (site.path / "shop").mkdir()
    (site.path / "shop" / "__init__.py").touch()
    (site.path / "shop" / "settings.py").write_text(SETTINGS.format(**where))
    (site.path / "shop" / "jobs.py").write_text(JOBS)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    return site


def backends(site, which):
    return [line["backend"] for line in site.trail(event="end", which=which)]


def test_a_connection_that_the_server_has_ended_costs_no_job(django, postgres, postgres_url):
    names = {"shop.jobs.plain": "plain", "shop.jobs.in_a_coroutine": "coroutine"}

    def run(times):
        for name in names:
            django.queue.push(name)
        eventually(lambda: 0 == django.queue.size())
        assert [times] * 2 == [len(backends(django, which)) for which in names.values()], pool.log()[-3000:]

    with django.pool("--workers", "1", "--modules", "shop.jobs") as pool:
        run(1)
        run(2)
        postgres.execute(postgres_url, KILL)
        run(3)

    for which in names.values():
        first, second, third = backends(django, which)
        assert first == second  # a good one is kept
        assert second != third


def test_settings_that_do_not_import_are_a_failed_boot(django, monkeypatch):
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.misspelt")
    done = django.work("--modules", "shop.jobs", check=False)

    assert 1 == done.returncode
    assert "cannot import shop.misspelt: there is no misspelt in the package shop" in done.stderr
