"""How every error is reported: its line on standard error and its exit code."""

from __future__ import annotations

from difflib import SequenceMatcher

import click

from queuepool import errors
from queuepool.cli import output
from queuepool.config.words import KEYS
from queuepool.unix.exit_codes import (
    ALREADY_RUNNING,
    BROKEN_PIPE,
    CONFIG,
    FAILED,
    INTERRUPTED,
    NO_ROOM,
    NOT_RUNNING,
    USAGE,
)

_CODES: dict[type[BaseException], int] = {
    errors.NoRoom: NO_ROOM,
    errors.PoolRunning: ALREADY_RUNNING,
    errors.ConfigError: CONFIG,
    errors.StoreUnfit: CONFIG,
    errors.NotRunning: NOT_RUNNING,
}
#: reported in one line; anything else is a bug of ours and shows its traceback
TOLD = (click.UsageError, click.Abort, errors.QueuepoolError, OSError, KeyboardInterrupt)
#: most characters of a usage error
_MAX_TEXT = 400
#: a value for each unit that does not explain itself
_EXAMPLES = {"SECONDS": "10", "COUNT": "4", "MB": "256", "TIME": "35d", "ADDRESS": "127.0.0.1:9100"}
#: how similar an option must be to be suggested, and by how much it may fall short of the best one
_LEAST_ALIKE, _ALMOST_AS_GOOD = 0.7, 0.1
_MOST_COMPARED, _MOST_SUGGESTED = 64, 3


def code_of(error: BaseException, pool: str = "") -> int:
    """Report an error, and which of several pools it concerns; returns the exit code. Raises errors not in ``TOLD``."""
    match error:
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED
        case BrokenPipeError():
            output.close()
            return BROKEN_PIPE
        case click.UsageError():
            output.complain(line_of(error))
            return USAGE
        case errors.BootFailure():
            return _boot_failure(error)
        case errors.QueuepoolError():
            return _report(error, f"pool={pool} " if pool else "")
        case OSError():
            return _of_the_system(error)
    raise error


def _boot_failure(error: errors.BootFailure) -> int:
    if isinstance(error.__cause__, KeyboardInterrupt):
        return INTERRUPTED
    for line in error.trace.splitlines():
        output.complain(line)
    output.complain(f"queuepool: {error}")
    return FAILED


def _of_the_system(error: OSError) -> int:
    output.close()  # it may be the output that has no room
    output.complain(f"queuepool: {error.filename or 'output'}: {error.strerror or error}")
    return FAILED


def _report(error: errors.QueuepoolError, prefix: str) -> int:
    if isinstance(error, errors.ConfigError):
        # Each line names the file and the line, as compilers do.
        for line in str(error).split("\n"):
            output.complain(f"{prefix}{line}")
    elif isinstance(error, errors.StoreDown) and not isinstance(error, errors.StoreDenied):
        output.complain(f"{prefix}queuepool: the store cannot be reached or cannot serve now: {error}")
    else:
        output.complain(f"{prefix}queuepool: {error}")
    return _CODES.get(type(error), FAILED)


def line_of(error: click.UsageError) -> str:
    """The line for standard error: the verb, what is wrong (by click, where that says what to do), and its help."""
    verb = error.ctx.command_path if error.ctx else "queuepool"
    words = _cut(_words_of(error))
    return f"{verb}: {words} See {verb} --help" if words.endswith("?") else f"{verb}: {words}; see {verb} --help"


def _words_of(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption):
        return _not_a_flag(error.option_name) or _no_such(error)
    if isinstance(error, click.BadOptionUsage) and (option := _option_of(error)):
        return _needs_value(error.option_name, option)
    # Click lists choices on separate lines.
    return " ".join(error.format_message().split()).rstrip(".")


def _not_a_flag(option: str) -> str:
    """For a configuration key without a flag: where to set it instead; else empty."""
    from queuepool.config import settings  # imported here: only a mistake needs it

    key = option.removeprefix("--").replace("-", "_")
    for section in ("connection", "pool"):
        if key in (known := settings.KEYS[section]) and not known[key].flag:
            variable = f"QUEUEPOOL_{section.upper()}_{key.upper()}"
            return f"{option} is not a flag but a key of [{section}]: set it there, or as {variable}"
    return ""


def _no_such(error: click.NoSuchOption) -> str:
    known = error.ctx.command.params if error.ctx else []
    forms = [form for param in known for form in (*param.opts, *param.secondary_opts) if form.startswith("--")]
    ours = f"--{KEYS.get(error.option_name[2:].replace('-', '_'), '')}".replace("_", "-")
    close = [ours] if ours in forms else _closest(error.option_name, forms)
    return f"there is no {error.option_name!r}" + (f"; did you mean {' or '.join(map(repr, close))}?" if close else "")


def _closest(option: str, forms: list[str]) -> list[str]:
    """The forms that are about as similar as the best one, which comes first."""
    grades = {form: _likeness(option, form) for form in forms}
    least = max(_LEAST_ALIKE, max(grades.values(), default=0.0) - _ALMOST_AS_GOOD)
    return sorted((form for form in forms if grades[form] >= least), key=lambda form: -grades[form])[:_MOST_SUGGESTED]


def _likeness(option: str, form: str) -> float:
    """From 0 to 1, which is for a form that begins with what was typed; leading dashes are ignored."""
    typed, known = option.lstrip("-")[:_MOST_COMPARED], form.lstrip("-")
    return 1.0 if known.startswith(typed) else SequenceMatcher(None, typed, known).ratio()


def _option_of(error: click.BadOptionUsage) -> click.Option | None:
    known = [one for one in (error.ctx.command.params if error.ctx else ()) if isinstance(one, click.Option)]
    return next((one for one in known if error.option_name in (*one.opts, *one.secondary_opts)), None)


def _needs_value(form: str, option: click.Option) -> str:
    if option.is_flag:
        return f"{form} takes no value"
    unit = str(option.metavar)
    example = _EXAMPLES.get(unit.removesuffix(",..."))
    return f"{form} needs {unit}" + (f", as in {form} {example}" if example else "")


def _cut(text: str) -> str:
    """Shorten what was typed: an argument may have 128 KiB."""
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT // 2]} … {text[-_MAX_TEXT // 2 :]}"
