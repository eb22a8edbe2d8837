"""The names that a job had before it was renamed: what was queued under them runs it all the same."""

from __future__ import annotations

from queuepool.errors import ConfigError
from queuepool.jobs.definition import check_job_name


def aliases_of(value: object) -> tuple[str, ...]:
    """The names as ``@job(aliases=...)`` gives them. Raises ``ConfigError``."""
    if not isinstance(value, (list, tuple)):
        raise ConfigError("@job", f"aliases cannot be {value!r}: they are a list of names, as ['app.old.send']")
    for name in value:
        check_job_name(name)
    return tuple(value)
