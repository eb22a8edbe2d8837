"""A group of verbs that keeps their order and suggests one for a misspelt verb."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click

from queuepool.cli import output
from queuepool.config.words import VERBS
from queuepool.unix.exit_codes import USAGE

#: the variable that a shell sets to ask for completions: click's name for a program called queuepool
COMPLETE = "_QUEUEPOOL_COMPLETE"


class Verbs(click.Group):
    """Lists the verbs in the order in which they were added.

    Without one, ``list`` is meant where it is one of them; else the help is printed as for a mistake.
    """

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if "list" in self.commands and not context.resilient_parsing and _names_no_verb(args, context):
            args = ["list", *args]
        if all(word == "--" for word in args) and not context.resilient_parsing:
            for line in context.get_help().splitlines():
                output.complain(line)
            context.exit(USAGE)
        return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except click.BadOptionUsage as error:
            # Click does not say which verb's option it is. The innermost group comes first.
            verb = context.invoked_subcommand
            if error.ctx is None and verb and (command := self.get_command(context, verb)):
                error.ctx = click.Context(command, parent=context, info_name=verb)
            raise

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        verb = args[0]
        known = self.list_commands(context)
        if verb not in known and not verb.startswith("-"):
            context.fail(f"there is no {verb!r}{_hint(verb, known)}")
        return super().resolve_command(context, args)


def _names_no_verb(args: list[str], context: click.Context) -> bool:
    """Whether an option comes first, other than that for help."""
    return not args or (args[0].startswith("-") and args[0] not in context.help_option_names)


def _hint(verb: str, known: list[str]) -> str:
    """What was probably meant: our word for another queue's, or a verb that is spelt almost the same."""
    bare = verb.removeprefix("queue:")
    ours = VERBS.get(bare, bare)
    if ours.partition(" ")[0] in known:
        return f"; here that is {ours!r}"
    close = get_close_matches(bare, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
