"""The dashboard in the browser, and who may log in to it."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

import click

from queuepool.cli import output
from queuepool.cli.error_report import code_of
from queuepool.cli.options import PLACE, WEB, Where, located, option, parsed
from queuepool.config.loader import Config
from queuepool.config.secrets import holds_control_characters
from queuepool.config.web import refuse_strangers
from queuepool.errors import ConfigError, QueuepoolError
from queuepool.unix import fork, proc
from queuepool.unix.exit_codes import OK

_ROLES = ("viewer", "operator", "admin")
#: most letters of the pools' names in the process's title
_MOST_LETTERS = 100
_LEAST_PASSWORD = 8
#: what the extra installs
_LIBRARIES = ("starlette", "uvicorn", "jinja2")


def _name(raw: str) -> str:
    from queuepool.web.visitors import NAME  # imported here: few add a user

    if not NAME.fullmatch(raw):
        raise ValueError("a name is up to 64 of A-Z a-z 0-9 _ . @ -")
    return raw


@click.command()
@located(*PLACE, *WEB)
@option("--add-user", "user", metavar="NAME", type=parsed(_name), help="Add a line for this user, and do not serve")
@option("--role", metavar="ROLE", type=click.Choice(_ROLES), help="What the user may do  [default: viewer]")
def web(where: Where, user: str | None, role: str | None) -> int:
    """Show pools, queues and jobs in the browser

    Listens on 127.0.0.1:8420. Other addresses need users or a token first, and whoever has not logged in on this host
    only sees (see [web] in the configuration). With --add-user it asks for a password, or takes a line of its input,
    and adds the user to the file that users names.
    """
    config = replace(where.load(), pools=where.pools())
    if user:
        return _add(config.web.users, user, role or _ROLES[0])
    if role:
        raise click.UsageError("--role is for --add-user")
    return _serve(config)


def show_beside(where: Where) -> None:
    """Fork a process that serves the dashboard until this one ends. Raises ``ConfigError``, ``OSError``.

    If it cannot listen it says so, and nothing else depends on it. Call it before any thread is started.
    """
    config = replace(where.load(), pools=where.pools())
    _refuse_missing()
    refuse_strangers(config.web)
    fork.spawn(lambda: _serve_or_report(config))


def _serve_or_report(config: Config) -> int:
    try:
        return _serve(config)
    except QueuepoolError as error:
        return code_of(error)


def _refuse_missing() -> None:
    if any(find_spec(name) is None for name in _LIBRARIES):
        raise ConfigError("queuepool web", "needs pip install 'queuepool-worker[web]'")


def _serve(config: Config) -> int:
    _refuse_missing()
    from queuepool import log
    from queuepool.unix.signals import WorkerSignals, reset_inherited
    from queuepool.web.dashboard import own_dashboard
    from queuepool.web.server import serve

    pages, listen = own_dashboard(config), config.web.listen
    names = ",".join(pool.name for pool in config.pools)[:_MOST_LETTERS]
    reset_inherited()
    signals = WorkerSignals()
    signals.listen()
    log.setup(replace(config.pools[0], log=None), "dashboard", write_timeout=1.0)

    def ready() -> None:
        proc.show(f"queuepool: dashboard [{names}] running listen={listen}")
        output.say(f"the dashboard is at {_url(listen, config.web.path)}")
        output.flush()

    serve(pages, listen, partial(getattr, signals, "stop"), ready)
    return OK


def _url(listen: str, path: str) -> str:
    return listen if listen.startswith("unix:") else f"http://{listen}{path}/"


def _add(file: Path | None, name: str, role: str) -> int:
    from queuepool.web.logins import can_be_sent
    from queuepool.web.visitors import hashed

    if file is None:
        raise click.UsageError("--add-user needs a file: give --users FILE, or set users in [web]")
    password = _password(name)
    if len(password) < _LEAST_PASSWORD:
        raise click.UsageError(f"a password has at least {_LEAST_PASSWORD} characters")
    if holds_control_characters(password) or not can_be_sent(name, password):
        raise click.UsageError("no browser can send this password: it is too long, or has characters that are none")
    _replace_line(file.resolve(), name, f"{name}:{role}:{hashed(password)}")
    output.say(f"{name} may log in as {role}")
    return OK


def _password(name: str) -> str:
    if output.has_terminal():
        return str(click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True))
    return sys.stdin.buffer.readline().decode("utf-8", "surrogateescape").rstrip("\r\n") if sys.stdin else ""


def _replace_line(file: Path, name: str, line: str) -> None:
    """Write the file anew: whoever reads it sees the old or the new one. It keeps its owner and its mode.

    A new one can be read by its owner alone.
    """
    with _locked(file) as old:
        about = os.stat(old.fileno())
        kept = [one for one in old.read().splitlines() if one.partition(":")[0] != name]
        number, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with open(number, "w", errors="surrogateescape") as written:
                written.write("\n".join([*kept, line, ""]))
                os.fchmod(number, stat.S_IMODE(about.st_mode))
                with suppress(PermissionError):  # only root can give a file away
                    os.fchown(number, about.st_uid, about.st_gid)
            os.replace(draft, file)
        except OSError:
            os.unlink(draft)
            raise


@contextmanager
def _locked(file: Path) -> Iterator[TextIO]:
    """The file, made if there is none, for one at a time that writes it anew: the next waits, and reads the new one."""
    while True:
        number = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        with open(number, errors="surrogateescape") as found:
            if not stat.S_ISREG(os.stat(number).st_mode):
                raise click.UsageError(f"{file} is not a file")
            fcntl.flock(found, fcntl.LOCK_EX)
            if _is_at(file, found):
                yield found
                return


def _is_at(file: Path, found: TextIO) -> bool:
    """Whether it is still the file of this name: another may have been put there while we waited."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(file), os.stat(found.fileno()))
    return False
