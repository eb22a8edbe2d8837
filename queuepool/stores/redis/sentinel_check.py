"""Check what the sentinels of a URL say: who answers, whether they agree, and whether a failover could succeed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import redis

from queuepool.config import sentinels
from queuepool.stores.factory import Stores
from queuepool.stores.finding import Finding, Grade, refusal
from queuepool.stores.redis.sentinel import SILENT, Said, Sentinel, pairs, whereabouts

#: with fewer, the loss of one host can leave none, or too few to agree
_FEWEST = 3
_UNBOUNDED = (
    "min-replicas-to-write 0: a primary that is cut off from its replicas goes on taking jobs, which are lost when it"
    " comes back; set min-replicas-to-write 1"
)
#: of the user at the sentinels; the last two for ``check`` alone
_NEEDED = (
    "+sentinel|master +sentinel|get-master-addr-by-name +subscribe &+promoted-slave &+switch-master"
    " +sentinel|ckquorum +sentinel|replicas"
)
_Words = Iterator[tuple[Grade, str]]


def inspect_sentinels(stores: Stores, what: str) -> Iterator[Finding]:
    """The findings about the sentinels of the queue's URL; none if there are none. Closes what it opens."""
    if not sentinels.is_of_sentinels(stores.settings.url):
        return
    all_of_them = whereabouts(stores.settings.url).own_sentinels()
    try:
        yield from (Finding(grade, what, words) for grade, words in _all(all_of_them))
    finally:
        for one in all_of_them:
            one.close()


def _all(all_of_them: Sequence[Sentinel]) -> _Words:
    said: list[tuple[Sentinel, Said]] = []
    for one in all_of_them:
        grade, words, found = _asked(one)
        yield grade, f"sentinel {one.where} {words}"
        yield from _news(one) if found else ()
        said += [(one, found)] if found else []
    if not said:
        yield Grade.FAIL, "no sentinel says where the primary is"
        return
    if len(all_of_them) < _FEWEST:
        yield Grade.WARN, f"the url names {len(all_of_them)} sentinel(s): name {_FEWEST} or more, on different hosts"
    newest, best = max(said, key=lambda pair: pair[1].config_epoch)
    yield from _agreement(newest, best, said)
    yield from _failover(newest, best)


def _agreement(newest: Sentinel, best: Said, said: Sequence[tuple[Sentinel, Said]]) -> _Words:
    others = [pair for pair in said if pair[1].place != best.place]
    if equals := [one.where for one, found in others if found.config_epoch == best.config_epoch]:
        words = f"{', '.join(equals)} name another primary than {newest.where}"
        yield Grade.FAIL, f"{words}, and none has seen more failovers: do all watch the same servers?"
    if behind := [one.where for one, found in others if found.config_epoch < best.config_epoch]:
        yield Grade.WARN, f"the sentinels disagree: {', '.join(behind)} name another primary than {newest.where}"


def _asked(one: Sentinel) -> tuple[Grade, str, Said | None]:
    try:
        said = one.look()
    except redis.AuthenticationError as error:
        return Grade.FAIL, f"refuses its password (sentinel_user, sentinel_password): {error}", None
    except redis.exceptions.NoPermissionError as error:
        return Grade.FAIL, f"refuses to say where it is: {error}; the user needs {_NEEDED}", None
    except SILENT as error:
        return Grade.WARN, f"does not answer: {error}", None
    if said is None:
        return Grade.FAIL, f"knows no primary named {one.name!r}", None
    return Grade.OK, f"names {said.host}:{said.port} as the primary of {one.name!r}", said


def _news(one: Sentinel) -> _Words:
    """Its news come from a connection of their own, and a refusal behind the first look."""
    refusals = one.news()
    with suppress(*SILENT):
        if refusal := next(refusals) or next(refusals):
            yield Grade.WARN, f"sentinel {one.where} {refusal}: a failover is noticed up to a second later"
    refusals.close()


def _failover(one: Sentinel, said: Said) -> _Words:
    """Whether the others could agree on a failover, and to what."""
    quorum, replicas = one.ask(("SENTINEL", "CKQUORUM", one.name), ("SENTINEL", "REPLICAS", one.name))
    for refused in (quorum, replicas):
        if isinstance(refused, redis.exceptions.NoPermissionError):
            yield Grade.WARN, f"whether a failover is possible is unknown: {refused}; the user needs {_NEEDED}"
            return
    if isinstance(quorum, Exception):
        yield Grade.WARN, f"no failover is possible: {quorum}"
    else:
        yield Grade.OK, f"a failover is possible: quorum {said.facts.get('quorum')}, {quorum.decode()}"
    names = [] if isinstance(replicas, Exception) else [pairs(words) for words in replicas]
    well = [found for found in names if found.get("master-link-status") == "ok"]
    if well:
        yield Grade.OK, f"replicas: {len(well)}"
    else:
        yield Grade.WARN, "no replica follows the primary: if it is lost, the jobs are"


def inspect_primary(stores: Stores, about: Mapping[str, object]) -> _Words:
    """What only matters where a replica may be promoted; ``about``: the primary's INFO."""
    if not sentinels.is_of_sentinels(stores.settings.url):
        return
    if refusal(partial(stores.client.command, "ROLE")):
        yield Grade.WARN, "the user may not run 'role' (ACL): a replica is noticed by the first write alone; add +role"
    if about and "min_slaves_good_slaves" not in about:
        yield Grade.WARN, _UNBOUNDED
