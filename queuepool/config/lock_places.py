"""Where Laravel's unique locks are: beside the queue, unless its cache is elsewhere."""

from __future__ import annotations

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of


def lock_home_of(settings: ConnectionSettings) -> str:
    """The URL at which Laravel's default cache keeps its locks."""
    is_other = settings.control_url and kind_of(settings.control_url) != kind_of(settings.url)
    return settings.lock_url or (settings.control_url if is_other else settings.url)


def lock_urls_of(settings: ConnectionSettings) -> list[str]:
    """Where Laravel's locks may be, if not at ``url``: those of its default cache first, then of ``uniqueVia()``."""
    home, control = lock_home_of(settings), settings.control_url
    found = [home] if home != settings.url else []
    known = map(kind_of, (settings.url, *found))
    return [*found, control] if control and kind_of(control) not in known else found
