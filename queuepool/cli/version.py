"""Which versions run here: what a bug report should begin with."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import suppress

import click

from queuepool import __version__
from queuepool.cli import output

#: the packages whose versions may matter, by their names on PyPI
_BESIDE = (
    "redis", "hiredis", "SQLAlchemy", "psycopg", "PyMySQL", "cryptography", "click", "psutil", "Django",
    "opentelemetry-api", "sentry-sdk", "starlette", "uvicorn", "Jinja2",
)  # fmt: skip


@click.command()
def version() -> None:
    """Print the versions of queuepool, Python and the libraries that it uses"""
    output.say(f"queuepool {__version__}")
    output.say(f"{platform.python_implementation()} {platform.python_version()}")
    for line in _libraries():
        output.say(line)


def _libraries() -> Iterator[str]:
    from importlib import metadata  # imported here: most verbs do without it

    for name in _BESIDE:
        with suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"
