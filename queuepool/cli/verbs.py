"""The table of verbs, in the order in which they are listed; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import click

from queuepool import __version__
from queuepool.cli.group import Verbs

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: the module and name of each verb, and the first line of its help, so that listing them imports none
VERBS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "start": ("pools.start", "Run the pool in the foreground"),
    "work": ("work.work", "Run one worker in the foreground, without a master"),
    "listen": ("listen.listen", "Run every job in a fresh interpreter, for development"),
    "stop": ("pools.stop", "Stop the local pools after their running jobs"),
    "drain": ("pools.drain", "Stop the local pools after their running jobs, and wait for their end"),
    "pause": ("control.pause", "Pause the local pools, or queues on all hosts"),
    "continue": ("control.resume", "Continue after a pause"),
    "scale": ("scale.scale", "Scale each local pool to N workers"),
    "restart": ("control.restart", "Replace the workers of all hosts, each after its job"),
    "reload": ("control.reload", "Replace the workers of the local pools, each after its job"),
    "status": ("status.status", "Show the local pools: processes, jobs, counters"),
    "top": ("top.top", "Watch the local pools: workers, queues, jobs, rates"),
    "web": ("web.web", "Show pools, queues and jobs in the browser"),
    "metrics": ("metrics.metrics", "Print the metrics of the local pools for Prometheus"),
    "history": ("history.history", "Show rates, run times and waits of the past, by job; then queues and events"),
    "journal": ("journal.journal", "Show who has done what: pauses, restarts, what was put back or dropped"),
    "push": ("push.push", "Push the job NAME and print its id"),
    "jobs": ("jobs.jobs", "Find jobs by what they are, where they are, and what is in their arguments"),
    "job": ("job.job", "Show where a job is, and the state of a tracked one; or wait until that is over"),
    "step": ("steps.steps", "Forget a step that is kept of a job, so that it runs again"),
    "cancel": ("cancel.cancel", "Cancel one job that waits, or that runs on this host"),
    "flow": ("flow.flow", "List flows, show one as a graph, cancel it, or resume it after a failure"),
    "limits": ("limits.limits", "List limits, with those that hold places and those that wait, or set their numbers"),
    "stack": ("stack.stack", "Show where a job is in its code, while it runs"),
    "size": ("queues.size", "Count the jobs of queues"),
    "monitor": ("queues.monitor", "Show which queues are too long"),
    "drop": ("moving.drop", "Drop the waiting jobs that fit, with their unique locks"),
    "move": ("moving.move", "Move waiting jobs from one queue to another, also of another connection"),
    "clear": ("queues.clear", "Drop the jobs of queues, by default the pools'"),
    "schedule": ("schedule.schedule", "List schedules, show how their last runs ended, push or pause them"),
    "failed": ("failed.failed", "List failed jobs, or show the one with this ID"),
    "retry": ("failed.retry", "Put failed jobs back on their queues, with all their tries"),
    "forget": ("failed.forget", "Drop failed jobs by ID, or all that fit"),
    "flush": ("failed.flush", "Drop all failed jobs"),
    "prune-failed": ("failed.prune", "Drop old failed jobs"),
    "quarantine": ("quarantine.quarantine", "List, show, retry or drop payloads that could not be jobs"),
    "locks": ("locks.locks", "List the locks of unique jobs, or free them"),
    "down": ("control.down", "Begin maintenance mode"),
    "up": ("control.up", "End maintenance mode"),
    "migrate": ("migrate.migrate", "Create Laravel's tables in a database, if they are missing"),
    "check": ("check.check", "Check configuration, server, permissions and modules"),
    "version": ("version.version", "Print the versions of queuepool, Python and the libraries that it uses"),
    "completion": ("completion.completion", "Print a shell's completion script for verbs and flags"),
})  # fmt: skip


class _Lazy(Verbs):
    """Imports verbs lazily: ``status`` runs often and should not wait for what the others need."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, verb: str) -> click.Command | None:
        module, _, name = VERBS.get(verb, ("", ""))[0].partition(".")
        return cast(click.Command, getattr(import_module(f"queuepool.cli.{module}"), name)) if name else None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # imported here: only a shell asks for it

        verbs = [CompletionItem(verb, help=line) for verb, (_, line) in VERBS.items() if verb.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, context, incomplete)]


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def verbs() -> None:
    """Run background jobs: a pool of workers, and a queue in a file, Redis or a database"""
