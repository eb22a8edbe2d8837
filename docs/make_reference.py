"""Write conf/pool.ini, and the generated halves of pages in docs/reference: what follows their marker.

Settings come from their fields: what is said of each is the comment above it. Commands come from click, metrics from
their table, the names of the Python API from the directives in api.md and the docstrings. What stands above a section
of conf/pool.ini is written there. ``scripts/docs`` runs this; ``tests/cli/test_reference_pages.py`` fails when a page
is not what it would write.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from textwrap import dedent

import click

from queuepool.cli.verbs import verbs
from queuepool.config import pool_queues, secrets, values
from queuepool.config.alerts import program, share, silence, waits, webhook
from queuepool.config.setting import Setting
from queuepool.config.settings import KEYS, SECTIONS
from queuepool.config.timetable import cron, interval, time_zone
from queuepool.config.web import address, hosts, prefix, words
from queuepool.metrics.samples import METRICS

ROOT = Path(__file__).parent.parent
MARKER = "<!-- Generated from here on: run scripts/docs, do not edit. -->"
#: characters of a line in conf/pool.ini
_WIDTH = 120
_TIME = "seconds, or with a unit: `60s`, `2m`, `1h`, `1d`"
#: what a value may be, by its parser
_VALUES: Mapping[object, str] = {
    values.seconds: _TIME,
    values.some_seconds: f"{_TIME}; above 0",
    values.delays: f"one or several of: {_TIME}; commas in between",
    values.count: "a whole number",
    pool_queues.queue_limits: "queues, each with a number from 1 to 10000: `emails:20, imports:2`; empty = none",
    values.kept: "a time from `1h` to `35d`, or 0",
    values.replicas: "a number, or `all`",
    values.workers: f"a whole number from 1 to {values.MAX_WORKERS}, or `auto`",
    values.bound: f"a whole number from 1 to {values.MAX_WORKERS}, or empty",
    values.memory_reserve: "MB: `512`, `512M`, `1G`; or with a `%`: `10%`",
    values.concurrency: f"a whole number from 1 to {values.MAX_CONCURRENCY}",
    values.ahead: f"a whole number from 1 to {values.MAX_AHEAD}, or `auto`",
    values.boolean: "yes or no",
    values.megabytes: "MB: `128`, `128M`, `1G`",
    values.memory_limit: "MB: `128`, `128M`, `1G`; or with a `+`: `+128`",
    pool_queues.served_queues: "names of queues, commas in between; each with a weight, or none: `high*6,low*4`",
    values.modules: "names of Python modules, commas in between",
    values.log_level: "`debug`, `info`, `warning`, `error`, `critical`",
    values.path: "a path",
    values.text: "text",
    values.table: "a table's name",
    values.schema: "a schema's name, or empty",
    secrets.cipher: "`AES-256-CBC`, `AES-128-CBC`, `AES-256-GCM` or `AES-128-GCM`",
    values.some_text: "text",
    values.section_name: "a name",
    secrets.url: "a URL",
    values.php_class: "the full name of a PHP class",
    secrets.app_key: "`base64:KEY`, or the path of a file",
    secrets.previous_keys: "`base64:KEY`, commas in between; or the path of a file",
    values.queue: "the name of a queue",
    time_zone: "a name of the IANA database: `UTC`, `Europe/Berlin`",
    values.listen: "`HOST:PORT` with an IP address, or `unix:/PATH`; or empty",
    cron: "five fields, or empty",
    interval: "whole seconds, or with a unit: `60s`, `2m`, `1h`, `1d`; or empty",
    values.job_name: "a name, or empty",
    values.data: "JSON, or empty",
    share: "a percentage from `0%` to `100%`, or `0`",
    waits: f"{_TIME}; or `queue:time` for some queues, commas in between: `60, imports:1h`",
    silence: f"{_TIME}; at most `30m`",
    program: "an absolute path with arguments, or empty",
    webhook: "a URL of http or https, `slack:` before one of Slack's; or empty",
    address: "`HOST:PORT` with an IP address, or `unix:/PATH`",
    prefix: "a path, or empty",
    hosts: "names of hosts, commas in between, or empty",
    words: "words, commas in between, or empty",
    secrets.token: "16 characters or more, or the path of a file; or empty",
    secrets.signing_keys: "`NAME:SECRET`, commas in between; or the path of a file",
}


def texts() -> Mapping[tuple[str, str], list[str]]:
    """What is said of each setting, by section and key: the comment above its field."""
    found = {}
    for section, fields in SECTIONS.items():
        comments = re.findall(r"((?:    #: .*\n)+)(?:    # .*\n)*    (\w+): ", inspect.getsource(fields))
        said = {name: [line[7:] for line in comment.splitlines()] for comment, name in comments}
        found |= {(section, key): said[one.name] for key, one in KEYS[section].items()}
    return found


def pool_ini() -> str:
    """The shipped file: what it has above its first section and above each, and every key at its default."""
    head, *rest = re.split(r"(?m)^\[(\w+)\]\n", (ROOT / "conf/pool.ini").read_text())
    said, parts = texts(), [head]
    for section, body in zip(rest[::2], rest[1::2], strict=True):
        keys = [_shipped(one, said[section, key]) for key, one in KEYS[section].items()]
        *_, last = body.strip("\n").split("\n\n")
        above_next = [] if re.search(r"(?m)^\w+ =", last) else [last]
        parts += [f"[{section}]\n\n", "\n\n".join([*keys, *above_next]), "\n"]
    return "".join(parts)


def _shipped(setting: Setting, text: list[str]) -> str:
    said = f"Default: {setting.default_text or 'empty'}"
    *lines, last = [f"; {line}" for line in text]
    lines += [f"{last} {said}"] if len(f"{last} {said}") <= _WIDTH else [last, f"; {said}"]
    return "\n".join([*lines, f"{setting.key} = {setting.default_text}".rstrip()])


def value_of(parse: object) -> str:
    """What a value may be, by its parser."""
    if choices := _choices(parse):
        return f"{', '.join(choices[:-1])} or {choices[-1]}"
    return f"{_VALUES[parse.args[0]]}, or empty" if isinstance(parse, partial) else _VALUES[parse]


def _choices(parse: object) -> list[str]:
    """The words of a parser that takes no others."""
    if not isinstance(parse, partial):
        return []
    if parse.func is values.chosen:
        return [f"`{choice}`" for choice in parse.args[0]]
    return [*inner, "empty"] if (inner := _choices(parse.args[0])) else []


def configuration() -> str:
    """Each section with its keys."""
    lines, said = list[str](), texts()
    for section, keys in KEYS.items():
        lines += [f"## `[{section}]`", ""]
        for key, setting in keys.items():
            lines += [f"### `{key}`", "", *_prose(said[section, key]), "", *_facts(section, setting), ""]
    return "\n".join(lines)


def _prose(comment: Sequence[str]) -> Iterator[str]:
    """Lines that are indented by two are the items of a list, deeper ones go on with theirs."""
    was_item = False
    for line in comment:
        is_item = line.startswith("  ")
        if is_item != was_item:
            yield ""
        yield f"- {line.strip()}" if is_item and not line.startswith("   ") else f"{'  ' * is_item}{line.strip()}"
        was_item = is_item


def _facts(section: str, setting: Setting) -> Iterator[str]:
    yield f"- Value: {value_of(setting.parse)}"
    yield f"- Default: {f'`{setting.default_text}`' if setting.default_text else 'empty'}"
    if setting.flag:
        yield f"- Flag: `{'`, `'.join(setting.flag)}`"
    yield f"- Environment: `{variable_of(section, setting.key)}`"


def variable_of(section: str, key: str) -> str:
    """The variable of the environment that sets it."""
    return f"QUEUEPOOL_{section}_{key}".upper()


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
    found = {ROOT / "conf/pool.ini": pool_ini()}
    for name, text in parts.items():
        path = ROOT / f"docs/reference/{name}.md"
        head = path.read_text().partition(MARKER)[0]
        found[path] = f"{head}{MARKER}\n\n{text.rstrip()}\n"
    return found


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
