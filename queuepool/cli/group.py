"""A group of verbs that keeps their order and suggests one for a misspelt verb."""

from __future__ import annotations

from difflib import get_close_matches

import click

#: the variable that a shell sets to ask for completions: click's name for a program called queuepool
COMPLETE = "_QUEUEPOOL_COMPLETE"


class Verbs(click.Group):
    """Lists the verbs in the order in which they were added."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        verb = args[0]
        known = self.list_commands(context)
        if verb not in known and not verb.startswith("-"):
            close = get_close_matches(verb, known, 1)
            context.fail(f"there is no {verb!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(context, args)
