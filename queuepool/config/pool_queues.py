"""Parsers of what a pool's configuration says of the queues that it serves: their weights, and limits of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from queuepool.config.values import listed, queue, queues, shown

MAX_WEIGHT = 100
#: of a limit; and most characters of a queue's name that has one of its own
MOST_PLACES, _LONGEST_LIMITED = 10_000, 58


def served_queues(raw: str) -> tuple[str, ...]:
    """Names of queues, each once, all of them with a weight or none: ``high*6,low*4``, without blanks."""
    parts = [part.partition("*") for part in listed(raw)]
    names = queues(",".join(name.strip() or star for name, star, _ in parts))
    plain = [name for name, (_, star, _) in zip(names, parts, strict=True) if not star]
    if plain and len(plain) < len(names):
        raise ValueError(f"{shown(plain[0])} has no weight, but others have: give one to each, or to none")
    return names if plain else tuple(f"{name}*{_weight(part)}" for name, part in zip(names, parts, strict=True))


def _weight(part: tuple[str, str, str]) -> int:
    if not re.fullmatch(r"\s*0*[1-9][0-9]{0,2}\s*", part[2], re.ASCII) or int(part[2]) > MAX_WEIGHT:
        raise ValueError(f"{shown(''.join(part))}: a weight is a whole number from 1 to {MAX_WEIGHT}")
    return int(part[2])


def queue_words(queues: Sequence[str], weights: Sequence[int]) -> str:
    """The queues as the key `queue` has them."""
    return ",".join(map("{}*{}".format, queues, weights) if weights else queues)


def places(raw: str) -> int:
    """A whole number from 0 to 10000."""
    if not raw.isascii() or not raw.isdecimal() or not len(raw) <= 5 or int(raw) > MOST_PLACES:
        raise ValueError(f"{shown(raw)} is not a whole number from 0 to {MOST_PLACES}")
    return int(raw)


def queue_limits(raw: str) -> tuple[tuple[str, int], ...]:
    """Queues, each with a number of jobs: emails:20, imports:2."""
    found = dict[str, int]()
    for part in listed(raw) if raw.strip() else ():
        name, _, number = part.rpartition(":")
        if not name or not number.isdecimal() or not 1 <= int(number) <= MOST_PLACES:
            raise ValueError(f"{shown(part)} is not a queue and a number from 1 to {MOST_PLACES}, like emails:20")
        if len(queue(name)) > _LONGEST_LIMITED:
            raise ValueError(f"{shown(name)}: a queue with a limit has a name of at most {_LONGEST_LIMITED} characters")
        if name in found:
            raise ValueError(f"{shown(name)} is given twice")
        found[name] = int(number)
    return tuple(found.items())
