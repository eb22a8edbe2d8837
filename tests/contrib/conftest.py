"""What the tests of traces share."""

from __future__ import annotations

import pytest

from tests.support.pools import Site

#: for the mark ``libraries`` of those tests
LIBRARIES = ("tests.support.otel_sdk", "sentry_sdk.integrations.logging", "sentry_sdk.spotlight")


@pytest.fixture
def traced(site: Site, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Site:
    """A site with the test file's ``JOBS`` as its module ``traced``; producers find its queue in the environment."""
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_URL", site.connection.url)
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_PREFIX", site.connection.prefix)
    (site.path / "traced.py").write_text(request.module.JOBS)
    return site
