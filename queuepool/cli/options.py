"""What the verbs' flags have in common: the configuration, its keys, the pool, and that no value is given twice."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from unicodedata import category

import click

from queuepool.config import loader as config
from queuepool.config.loader import Config
from queuepool.config.setting import Setting
from queuepool.config.settings import KEYS, ConnectionSettings, PoolSettings
from queuepool.config.values import section_name
from queuepool.operating.choice import queues_of
from queuepool.operating.targets import note_on

T = TypeVar("T")
Verb = Callable[..., int | None]

#: the settings that have a flag, by ``section.key``
FLAGS: Mapping[str, Setting] = MappingProxyType({
    f"{section}.{key}": said
    for section in ("connection", "pool", "web")
    for key, said in KEYS[section].items()
    if said.help
})  # fmt: skip
CONNECTION = ("connection.url", "connection.prefix")
PLACE = (*CONNECTION, "pool.runtime_dir")
#: a pool takes them all, a lone worker those that do not concern a master
WEB = tuple(key for key in FLAGS if key.startswith("web."))
POOL = tuple(key for key in dict.fromkeys((*PLACE, *FLAGS)) if key not in WEB)
WORKER = tuple(key for key in FLAGS if not FLAGS[key].is_masters and key not in WEB)


@dataclass(frozen=True)
class Where:
    """What the command line sets, and the configuration, which is read once. Every method raises ``ConfigError``."""

    path: Path | None
    pool_name: str | None
    overrides: dict[str, str]

    def load(self) -> Config:
        """The whole configuration."""
        return self._loaded

    @functools.cached_property
    def _loaded(self) -> Config:
        return config.load(self.path, self.overrides)

    def pools(self) -> tuple[PoolSettings, ...]:
        """The named pool, else all; without a file there is one pool, with the given name. Raises ``UsageError``."""
        pools = self.load().pools
        if self.pool_name and not self.load().name:
            return tuple(replace(pool, name=self.pool_name) for pool in pools)
        found = tuple(pool for pool in pools if self.pool_name in (None, pool.name))
        if not found:
            raise click.UsageError(f"there is no pool {self.pool_name!r}, only: {_names(pools)}")
        return found

    def pool(self) -> PoolSettings:
        """The one pool that is meant. Raises ``UsageError`` if there are several."""
        pools = self.pools()
        if len(pools) > 1:
            raise click.UsageError(f"there are several pools, name one with --pool: {_names(pools)}")
        return pools[0]

    @property
    def is_part(self) -> bool:
        """Whether ``--pool`` has chosen one of the configuration's pools."""
        return self.pool_name is not None and bool(self.load().name)

    def connections(self) -> list[ConnectionSettings]:
        """The pools' connections, each once."""
        return list(dict.fromkeys(pool.connection for pool in self.pools()))

    def connection(self) -> ConnectionSettings:
        """The one connection that is meant; several pools may share it. Raises ``UsageError`` if there are several."""
        found = self.connections()
        return found[0] if len(found) == 1 else self.pool().connection

    def connection_of(self, queue: str) -> ConnectionSettings:
        """The connection that has this queue: the only one, else that of the pools that serve it.

        Raises ``UsageError`` if several connections may be meant.
        """
        found = self.connections()
        serving = list(dict.fromkeys(pool.connection for pool in self.pools() if queue in pool.queues))
        for only in (found, serving):
            if len(only) == 1:
                return only[0]
        why = "pools on several connections serve" if serving else "no pool serves"
        raise click.UsageError(f"{why} queue {queue}: name a pool with --pool: {_names(self.pools())}")

    def whole_connections(self, words: str, *, otherwise: str = "leave out --pool") -> list[ConnectionSettings]:
        """The connections, for what concerns all pools on them: ``words`` name it, ``otherwise`` is the advice.

        Raises ``UsageError`` if ``--pool`` leaves out a pool that shares its connection.
        """
        found = self.connections()
        others = [pool for pool in self.load().pools if pool.connection in found and pool not in self.pools()]
        if self.is_part and others:
            [one] = found
            reach = f"{words} all pools on connection {one.name}, also {_names(others)}"
            raise click.UsageError(f"{reach}: {otherwise}")
        return found

    def queues(self, connection: ConnectionSettings | None = None) -> tuple[str, ...]:
        """The pools' queues, each once; those on this connection, if one is given."""
        return queues_of(self.pools(), connection)

    def require(self, *queues: str) -> None:
        """Raises ``UsageError`` if other pools than the one that ``--pool`` has chosen serve these queues."""
        for queue in queues:
            serving = [pool for pool in self.load().pools if queue in pool.queues]
            if self.is_part and serving and queue not in self.queues():
                raise click.UsageError(f"queue {queue} is served by {_names(serving)}, not by pool {self.pool_name}")

    def note_on(self, queue: str) -> str:
        """A note if no pool of the file, or not the chosen one, serves this queue; else empty."""
        return note_on(self, queue, str(self.path)) if self.path else ""


def _names(pools: Sequence[PoolSettings]) -> str:
    return ", ".join(pool.name for pool in pools)


class Once(click.Option):
    """An option whose value may be given once only: otherwise the last of two would silently win."""

    def __init__(self, *args: Any, default: Any = None, **more: Any) -> None:
        super().__init__(*args, **{**more, "multiple": True, "callback": self._only})
        self._otherwise = default

    def _only(self, context: click.Context, option: click.Parameter, given: Sequence[Any]) -> Any:
        if len(given) > 1:
            raise click.BadParameter("was given twice")
        return given[0] if given else self._otherwise


def option(*forms: str, **more: Any) -> Callable[[Verb], Verb]:
    """``click.option`` for a value that may be given once only."""
    return click.option(*forms, cls=Once, **more)


def parsed(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A type of option from a parser of the configuration: a value that it refuses is a usage error."""

    def convert(raw: str) -> T:
        try:
            if any(category(letter) in ("Cc", "Cs") for letter in raw):
                raise ValueError("contains a line break or another character that cannot be shown")
            return parse(raw.strip(" \t"))
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return convert


#: any printable text
TEXT = parsed(str)


def located(*keys: str) -> Callable[[Verb], Verb]:
    """Adds ``-c``, ``--pool`` and a flag for each key; the verb gets a ``Where`` as its first argument."""

    def decorate(verb: Verb) -> Verb:
        @functools.wraps(verb)
        def with_where(**given: Any) -> int | None:
            path, pool = given.pop("config"), given.pop("pool")
            flags = {key: given.pop(_name_of(key)) for key in keys}
            overrides = {key: _raw(value) for key, value in flags.items() if value is not None}
            return verb(Where(path or _path_in_environment(), pool, overrides), **given)

        found: Verb = with_where
        for decorator in reversed([_CONFIG, _POOL, *map(_flag, keys)]):
            found = decorator(found)
        return found

    return decorate


def _file(raw: str) -> Path:
    if raw in ("", "-") or "://" in raw:
        raise ValueError("must be a file (give a URL with --url)")
    return Path(raw)


#: how a shell completes a value, by its unit
_ON_DISK = {"FILE": "file", "DIR": "dir"}


def _like(unit: str) -> dict[str, Any]:
    def complete(*_: object) -> list[Any]:
        from click.shell_completion import CompletionItem  # imported here: only a shell asks for it

        return [CompletionItem("", type=_ON_DISK[unit])]

    return {"shell_complete": complete} if unit in _ON_DISK else {}


_CONFIG = option(
    "-c", "--config", "config", metavar="FILE", type=parsed(_file), **_like("FILE"),
    help="Configuration file  [environment: QUEUEPOOL_CONFIG]",
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document")
_POOL = option(
    "--pool", metavar="NAME", type=parsed(section_name),
    help="Pool to take from the file; without a file, the name of the pool",
)  # fmt: skip


def _path_in_environment() -> Path | None:
    path = os.environ.get("QUEUEPOOL_CONFIG")
    return Path(path) if path else None


def _flag(key: str) -> Callable[[Verb], Verb]:
    said, name = FLAGS[key], _name_of(key)
    if not said.unit:
        return click.option(*said.flag, name, is_flag=True, default=None, help=said.help)
    default = said.default_text
    text = f"{said.help}  [default: {default}]" if default else said.help
    return option(*said.flag, name, metavar=said.unit, type=parsed(_judged(said)), help=text, **_like(said.unit))


def _judged(said: Setting) -> Callable[[str], str]:
    """The key's own parser, but returning the value as written: the configuration parses it again."""

    def judge(raw: str) -> str:
        said.parse(raw)
        return raw

    return judge


def _name_of(key: str) -> str:
    return key.replace(".", "_")


def _raw(value: str | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value
