"""The table of verbs, in the order in which they are told; each is imported when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

import click

from queuepool import __version__
from queuepool.cli import output
from queuepool.cli.exits import USAGE
from queuepool.cli.group import Verbs

_WHERE: Mapping[str, str] = MappingProxyType({
    "start": "pools.start", "work": "work.work", "listen": "listen.listen",
    "stop": "pools.stop", "pause": "control.pause", "continue": "control.resume", "scale": "pools.scale",
    "restart": "control.restart", "reload": "control.reload", "status": "status.status",
    "push": "push.push", "size": "queues.size", "monitor": "queues.monitor", "clear": "queues.clear",
    "failed": "failed.failed", "retry": "failed.retry", "forget": "failed.forget",
    "flush": "failed.flush", "prune-failed": "failed.prune", "quarantine": "quarantine.quarantine",
    "down": "control.down", "up": "control.up", "migrate": "migrate.migrate", "check": "check.check",
})  # fmt: skip


class _Lazy(Verbs):
    """``status`` is asked often, and should not wait for what the others need."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_WHERE)

    def get_command(self, context: click.Context, verb: str) -> click.Command | None:
        module, _, name = _WHERE.get(verb, "").partition(".")
        return cast(click.Command, getattr(import_module(f"queuepool.cli.{module}"), name)) if name else None


@click.group(
    cls=_Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def verbs(context: click.Context) -> None:
    """Run and look after workers on Laravel's queue"""
    if context.invoked_subcommand is None:
        for line in context.get_help().splitlines():
            output.complain(line)
        context.exit(USAGE)
