"""In the tests of a Django application."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.django_project import LIBRARIES

PROGRAM = """
import django
from django.conf import settings

DATABASE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
settings.configure(DATABASES={"default": DATABASE}, INSTALLED_APPS=["django.contrib.contenttypes"])
django.setup()

from functools import partial
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.test import TestCase
from django.test.runner import DiscoverRunner
from queuepool import job
from queuepool.testing import fake, run_now

@job("shop.add")
def add(name):
    ContentType.objects.create(app_label="shop", model=name)

def rows():
    return ContentType.objects.filter(app_label="shop").count()

class Rows(TestCase):
    def test_a_handler_sees_the_rows_of_the_test_and_adds_its_own(self):
        add("first")
        with run_now():
            add.dispatch("second")
        self.assertEqual(rows(), 2)

    def test_they_are_rolled_back(self):
        self.assertEqual(rows(), 0)

    def test_what_is_dispatched_at_a_commit(self):
        with fake() as pushed:
            with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
                transaction.on_commit(partial(add.dispatch, "third"))
                pushed.assert_nothing_pushed()
            pushed.assert_pushed(add, "third")

import sys
runner = DiscoverRunner(verbosity=0)
old = runner.setup_databases()
failed = runner.run_suite(runner.test_loader.loadTestsFromTestCase(Rows))
runner.teardown_databases(old)
sys.exit(0 if failed.wasSuccessful() and failed.testsRun == 3 else 1)
"""


@pytest.mark.libraries(*LIBRARIES)
def test_a_handler_runs_in_the_transaction_of_the_test_case(tmp_path):
    (tmp_path / "site_tests.py").write_text(PROGRAM)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("QUEUEPOOL")}
    env = ours | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = warm.run([sys.executable, "site_tests.py"], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
