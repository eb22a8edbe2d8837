"""Which pools on other hosts a verb means: ``--on HOST[/POOL]`` and ``--everywhere``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from queuepool.cli.options import Verb, parsed

if TYPE_CHECKING:
    from queuepool.operating.notices import PublishedPool


class PoolTarget(NamedTuple):
    """``HOST[/POOL][#ID]``, as ``status --all`` names pools."""

    host: str
    pool: str = ""
    instance: str = ""

    @classmethod
    def parsed(cls, raw: str) -> PoolTarget:
        place, _, instance = raw.partition("#")
        host, _, pool = place.partition("/")
        if not host:
            raise ValueError("must be HOST, HOST/POOL or HOST/POOL#ID")
        return cls(host, pool, instance)

    def __str__(self) -> str:
        return self.host + (f"/{self.pool}" if self.pool else "") + (f"#{self.instance}" if self.instance else "")

    def means(self, pool: PublishedPool) -> bool:
        is_named = self.host == pool.host and self.pool in ("", pool.name)
        return is_named and pool.instance.startswith(self.instance)


class Elsewhere(NamedTuple):
    """Which pools are meant, on all hosts; without targets, all of them."""

    targets: tuple[PoolTarget, ...] = ()

    def means(self, pool: PublishedPool) -> bool:
        return not self.targets or any(target.means(pool) for target in self.targets)


def reaching(verb: Callable[..., int | None]) -> Verb:
    """Adds ``--on`` and ``--everywhere``; the verb gets ``elsewhere``, or ``None``. It stands below ``located``."""

    @functools.wraps(verb)
    def with_elsewhere(*args: Any, targets: tuple[PoolTarget, ...], everywhere: bool, **given: Any) -> int | None:
        if targets and everywhere:
            raise click.UsageError("--everywhere means all pools: leave out --on")
        if (targets or everywhere) and given.get("as_json"):
            raise click.UsageError("--json does not go with --on or --everywhere")
        return verb(*args, elsewhere=Elsewhere(targets) if targets or everywhere else None, **given)

    on = click.option(
        "--on", "targets", metavar="HOST[/POOL]", multiple=True, type=parsed(PoolTarget.parsed),
        help="Pools of this host instead, by their name in status --all; may be repeated",
    )  # fmt: skip
    everywhere = click.option("--everywhere", is_flag=True, help="The pools of all hosts instead")
    return on(everywhere(with_elsewhere))
