"""The question before many jobs are touched."""

from __future__ import annotations

import click
from click.testing import CliRunner

from queuepool.cli.output import is_declined


def test_a_queues_name_from_a_store_commands_no_terminal():
    @click.command()
    def drop() -> None:
        assert is_declined("Drop 2 failed jobs of queue \x1b[2Jmail?", "nothing was dropped")

    done = CliRunner().invoke(drop, input="n\n")

    assert 0 == done.exit_code
    assert r"of queue \x1b[2Jmail?" in done.output
    assert "\x1b" not in done.output
