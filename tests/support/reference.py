"""The verbs and their flags, as docs/make_reference.py sees them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]


def imported(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_reference = imported(ROOT / "docs/make_reference.py")


def verbs() -> dict[str, click.Command]:
    return dict(make_reference.commands())


def flags(verb: click.Command) -> set[str]:
    options = [one for one in verb.params if isinstance(one, click.Option) and not one.hidden]
    return {form for one in options for form in (*one.opts, *one.secondary_opts)}
