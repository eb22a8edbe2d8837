"""Check what the sentinels of a URL say: who answers, whether they agree, and whether a failover could succeed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
        said += [(one, found)] if found else []
    if not said:
        yield Grade.FAIL, "no sentinel says where the primary is"
        return
    if len(all_of_them) < _FEWEST:
        yield Grade.WARN, f"the url names {len(all_of_them)} sentinel(s): name {_FEWEST} or more, on different hosts"
    newest, best = max(said, key=lambda pair: pair[1].config_epoch)
    behind = [one.where for one, found in said if found.place != best.place]
    if behind:
        yield Grade.WARN, f"the sentinels disagree: {', '.join(behind)} name another primary than {newest.where}"
    yield from _failover(newest, best)


def _asked(one: Sentinel) -> tuple[Grade, str, Said | None]:
    try:
        said = one.look()
    except redis.AuthenticationError as error:
        return Grade.FAIL, f"refuses its password (sentinel_user, sentinel_password): {error}", None
    except SILENT as error:
        return Grade.WARN, f"does not answer: {error}", None
    if said is None:
        return Grade.FAIL, f"knows no primary named {one.name!r}", None
    return Grade.OK, f"names {said.host}:{said.port} as the primary of {one.name!r}", said


def _failover(one: Sentinel, said: Said) -> _Words:
    """Whether the others could agree on a failover, and to what."""
    quorum, replicas = one.ask(("SENTINEL", "CKQUORUM", one.name), ("SENTINEL", "REPLICAS", one.name))
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
