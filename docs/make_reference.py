"""Write the generated halves of pages in docs/reference: what follows their marker.

Settings come from conf/pool.ini (text and default), the parsers (what a value may be) and the flags; commands come from
click, metrics from their table, the names of the Python API from the directives in api.md and the docstrings.
``scripts/docs`` runs this; ``tests/cli/test_reference_pages.py`` fails when a page is not what it would write.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from textwrap import dedent

import click

from queuepool.cli.flags import FLAGS
from queuepool.cli.verbs import verbs
from queuepool.config import values
from queuepool.config.addresses import listen
from queuepool.config.alerts import program, share, silence, waits, webhook
from queuepool.config.entries import section_name
from queuepool.config.loader import KEYS
from queuepool.config.schedules import data, interval, job_name, time_zone
from queuepool.config.secrets import app_key, previous_keys, signing_keys, url
from queuepool.config.timetable import cron
from queuepool.metrics.table import METRICS

ROOT = Path(__file__).parent.parent
MARKER = "<!-- Generated from here on: run scripts/docs, do not edit. -->"
_TIME = "seconds, or with a unit: `60s`, `2m`, `1h`, `1d`"
#: what a value may be, by its parser
_VALUES: Mapping[object, str] = {
    values.seconds: _TIME,
    values.some_seconds: f"{_TIME}; above 0",
    values.delays: f"one or several of: {_TIME}; commas in between",
    values.count: "a whole number",
    values.kept: "a time from `1h` to `35d`, or 0",
    values.workers: f"a whole number from 1 to {values.MAX_WORKERS}, or `auto`",
    values.ahead: f"a whole number from 1 to {values.MAX_AHEAD}, or `auto`",
    values.boolean: "yes or no",
    values.megabytes: "MB: `128`, `128M`, `1G`",
    values.memory_limit: "MB: `128`, `128M`, `1G`; or with a `+`: `+128`",
    values.queues: "names of queues, commas in between",
    values.modules: "names of Python modules, commas in between",
    values.log_level: "`debug`, `info`, `warning`, `error`, `critical`",
    values.path: "a path",
    values.text: "text",
    values.some_text: "text",
    section_name: "a name",
    url: "a URL",
    values.php_class: "the full name of a PHP class",
    app_key: "`base64:KEY`, or the path of a file",
    previous_keys: "`base64:KEY`, commas in between; or the path of a file",
    values.queue: "the name of a queue",
    time_zone: "a name of the IANA database: `UTC`, `Europe/Berlin`",
    listen: "`HOST:PORT` with an IP address, or `unix:/PATH`; or empty",
    cron: "five fields, or empty",
    interval: "whole seconds, or with a unit: `60s`, `2m`, `1h`, `1d`; or empty",
    job_name: "a name, or empty",
    data: "JSON, or empty",
    share: "a percentage from `0%` to `100%`, or `0`",
    waits: f"{_TIME}; or `queue:time` for some queues, commas in between: `60, imports:1h`",
    silence: f"{_TIME}; at most `30m`",
    program: "an absolute path with arguments, or empty",
    webhook: "a URL of http or https, `slack:` before one of Slack's; or empty",
    signing_keys: "`NAME:SECRET`, commas in between; or the path of a file",
}
#: likewise, of the keys whose parsers have no name
_VALUES_BY_KEY: Mapping[str, str] = {
    "driver": "`redis`, `sql` or empty",
    "failed": "`redis`, `sql`, `null` or empty",
    "failed_url": "a URL, or empty",
    "control_url": "a URL, or empty",
    "lock_url": "a URL, or empty",
    "maintenance_url": "a URL, or empty",
    "cipher": "`AES-256-CBC`, `AES-128-CBC`, `AES-256-GCM` or `AES-128-GCM`",
    "signing": "`off`, `accept` or `require`",
    "outcomes": "the name of a queue, or empty",
    "foreign": "`refuse` or `ignore`",
    "batches_url": "a URL, or empty",
    **dict.fromkeys(("jobs_table", "failed_table", "cache_table", "lock_table", "batches_table"), "a table's name"),
    "schema": "a schema's name, or empty",
    "object": "the full name of a PHP class, or empty",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key as conf/pool.ini has it: its comment without the default, and the default said there."""

    section: str
    key: str
    default: str
    text: tuple[str, ...]
    said_default: str | None

    @property
    def variable(self) -> str:
        return f"QUEUEPOOL_{self.section}_{self.key}".upper()

    @property
    def value(self) -> str:
        """What it may be."""
        return _VALUES.get(KEYS[self.section][self.key]) or _VALUES_BY_KEY[self.key]

    @property
    def flag(self) -> str:
        """Its spellings; empty without one."""
        found = FLAGS.get(f"{self.section}.{self.key}")
        return "`, `".join(found.forms or (f"--{self.key.replace('_', '-')}",)) if found else ""


def settings(path: Path = ROOT / "conf/pool.ini") -> Iterator[Setting]:
    """Every key of the file, in its order."""
    section, comment = "", list[str]()
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line and not line.startswith(";"):
            key, _, value = (part.strip() for part in line.partition("="))
            text, said = _without_default(comment)
            yield Setting(section, key, value, tuple(text), said)
        comment = [*comment, line[2:]] if line.startswith(";") else []


def _without_default(comment: list[str]) -> tuple[list[str], str | None]:
    found = re.search(r"\s*Default: (\S+?)\.?$", text := "\n".join(comment))
    return (text[: found.start()] if found else text).splitlines(), found and found[1]


def configuration() -> str:
    """Each section with its keys."""
    lines: list[str] = []
    section = ""
    for setting in settings():
        if setting.section != section:
            section = setting.section
            lines += [f"## `[{section}]`", ""]
        lines += [f"### `{setting.key}`", "", *_prose(setting.text), "", *_facts(setting), ""]
    return "\n".join(lines)


def _prose(comment: tuple[str, ...]) -> Iterator[str]:
    """Lines that are indented by two are the items of a list, deeper ones go on with theirs."""
    was_item = False
    for line in comment:
        is_item = line.startswith("  ")
        if is_item != was_item:
            yield ""
        yield f"- {line.strip()}" if is_item and not line.startswith("   ") else f"{'  ' * is_item}{line.strip()}"
        was_item = is_item


def _facts(setting: Setting) -> Iterator[str]:
    yield f"- Value: {setting.value}"
    yield f"- Default: {f'`{setting.default}`' if setting.default else 'empty'}"
    if setting.flag:
        yield f"- Flag: `{setting.flag}`"
    yield f"- Environment: `{setting.variable}`"


def commands(group: click.Group = verbs, path: str = "queuepool") -> Iterator[tuple[str, click.Command]]:
    """Every verb, and those of a group after it, by the words that call it."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        assert verb
        if not verb.hidden:
            yield f"{path} {name}", verb
            if isinstance(verb, click.Group):
                yield from commands(verb, f"{path} {name}")


def cli() -> str:
    """Each verb with its usage, its help and its flags."""
    lines: list[str] = []
    for path, verb in commands():
        context = click.Context(verb, info_name=path, **verbs.context_settings)
        usage = " ".join([path, *verb.collect_usage_pieces(context)])
        lines += [f"## `{path}`", "", "```text", usage, "```", "", *_help(verb), "", *_options(verb, context), ""]
    return "\n".join(lines)


def _help(verb: click.Command) -> Iterator[str]:
    """As it is written: its first line is a title without a full stop, indented lines are commands."""
    title, _, rest = inspect.cleandoc(verb.help or "").partition("\n")
    yield f"{title}."
    for paragraph in rest.strip("\n").split("\n\n") if rest else ():
        is_command = paragraph.startswith("    ")
        yield from ("", "```sh", dedent(paragraph), "```") if is_command else ("", paragraph)


def _options(verb: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in verb.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record and "--help" not in parameter.opts:
            spelling, text = record
            yield f"- `{spelling}`: {_sentence(text)}"


def _sentence(text: str) -> str:
    """The help of a flag; the default in brackets as a code."""
    return re.sub(r"\s*\[default: ([^];]+)", r" [default: `\1`", text)


def metrics() -> str:
    """Each metric with its type, its labels and its meaning."""
    lines = ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for one in METRICS.values():
        labels = ", ".join(f"`{label}`" for label in one.labels)
        lines.append(f"| `{one.name}` | {one.kind} | {labels} | {one.help}. |")
    return "\n".join(lines)


def api() -> str:
    """Each public name with its signature and the first sentence of its docstring, in the order of api.md."""
    lines: list[str] = []
    for heading, body in re.findall(r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)", (ROOT / "docs/reference/api.md").read_text()):
        directives = re.findall(r"(?m)^\.\. auto(\w+):: ([\w.]+)(\(\)|)((?:\n   :.+)*)", body)
        rows = [row for kind, path, *about in directives for row in _rows(kind, path, *about)]
        lines += [f"## {heading}", "", "| name | |", "| --- | --- |", *rows, ""]
    return "\n".join(lines)


def _rows(kind: str, path: str, bare: str, options: str) -> Iterator[str]:
    """The rows of one directive; ``bare``: its class is not made by applications."""
    found = resolve_name(path)
    if kind == "module":
        classes = (one for one in vars(found).values() if inspect.isclass(one) and one.__module__ == path)
        yield from (_row(one.__name__, one) for one in classes)
        return
    name = path.rpartition(".")[2]
    members = re.search(r":members:(.*)", options)
    chosen = members[1].replace(",", " ").split() if members else []
    fields = () if chosen or "undoc" not in options else getattr(found, "__annotations__", ())
    shown = name if bare or kind == "data" else f"{name}{_parameters(found)}"
    yield _row(shown, found, [field for field in fields if not field.startswith("_")])
    if members:
        for member in chosen or [one for one in vars(found) if not one.startswith("_")]:
            said = getattr(found, member, None)
            if said.__doc__ and (callable(said) or isinstance(said, property)):
                yield _row(f"{name}.{member}{_parameters(said) if callable(said) else ''}", said)


def _row(shown: str, found: object, fields: Sequence[str] = ()) -> str:
    text = " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())
    sentence = re.match(r".+?\.(?= |$)", text)
    has = f" Has {', '.join(f'`{one}`' for one in fields)}." if fields else ""
    return f"| `{shown}` | {sentence[0] if sentence else text}{has} |".replace("``", "`")


def _parameters(found: Callable[..., object]) -> str:
    """The parameters with their defaults, without types: the page is to be read."""
    signature = inspect.signature(found)
    several = [one.replace(annotation=one.empty) for one in signature.parameters.values() if one.name != "self"]
    text = str(signature.replace(parameters=several, return_annotation=signature.empty))
    return re.sub(r"mappingproxy\((.*?)\)", r"\1", text)


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    parts = {"api-names": api(), "cli": cli(), "configuration": configuration(), "metrics": metrics()}
    found = {}
    for name, text in parts.items():
        path = ROOT / f"docs/reference/{name}.md"
        head = path.read_text().partition(MARKER)[0]
        found[path] = f"{head}{MARKER}\n\n{text.rstrip()}\n"
    return found


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
