"""The schedules of jobs: ``@job(schedule="0 3 * * *")``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from queuepool.config.timetable import rule_of
from queuepool.errors import ConfigError

#: a database column of 255 characters holds it, with a prefix
_LONGEST_NAME = 150
_MAY_BE_EMPTY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_schedule(name: str, rule: object, target: Callable[..., Any]) -> None:
    """Raises ``ConfigError`` for an invalid rule, or a job that cannot be called without arguments."""
    if rule is None:
        return
    if not isinstance(rule, str) or not rule:
        raise ConfigError("@job", f"{name}: schedule cannot be {rule!r}: give a string like '0 3 * * *' or '30s'")
    if len(name) > _LONGEST_NAME:
        raise ConfigError(
            "@job", f"{name[:40]!r}...: a scheduled job's name may have at most {_LONGEST_NAME} characters"
        )
    try:
        rule_of(rule)
    except ValueError as error:
        raise ConfigError("@job", f"{name}: schedule: {error}") from None
    for parameter in inspect.signature(target).parameters.values():
        if parameter.default is parameter.empty and parameter.kind not in _MAY_BE_EMPTY:
            how = "give it a default, or set data in a [schedule:NAME] section"
            raise ConfigError("@job", f"{name}: a schedule calls it without {parameter.name!r}: {how}")
