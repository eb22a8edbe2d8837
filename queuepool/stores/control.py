"""The control keys: restart, pause and maintenance, in Laravel's cache, and the notices by which pools know each other.

A notice is JSON in a store that other programs can write to. A notice that is too large is not read, nor are too many
all: a steward decodes them in a thread, which must not hold the interpreter's lock for long.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.errors import BadPayload
from queuepool.payload import strict_json
from queuepool.stores.contract import NO_SECOND, NOTICE_LASTS, Control
from queuepool.stores.values import Values

_RESTART, _MAINTENANCE = "illuminate:queue:restart", "illuminate:foundation:down"
_SCHEDULE_PAUSED = "illuminate:schedule:paused"
_PHP_TRUE = b"b:1;"
#: how the value of our own pauses begins, and how it looks in PHP's serialization
_PAUSED_BY = "queuepool"
_OUR_PAUSE = re.compile(rb's:\d{1,3}:"queuepool (\d{1,11}) ([ -~]{0,200})";')

#: seconds between two reads of the control keys
PERIOD = 1.0
#: seconds for which a pool that has left is remembered; the book of these, and how many it keeps
LEFT_KEPT = 3600.0
_LEFT, _MOST_LEFT = "left", 200
#: seconds by which a notice may be ahead of the store's clock
_AHEAD = 60.0
#: a pool on any host: host, name, instance
PoolKey = tuple[str, str, str]


class KeyPlace(NamedTuple):
    """A full key, and the cache that it is in."""

    cache: Values
    key: str


class ControlKeys:
    """Reads and writes the control keys: ``restart`` is the key of Laravel's restart, with the pauses beside it.

    Laravel's cache prefix is the part of that key before Laravel's own name. ``maintenance`` is the key of Laravel's
    maintenance mode, ``down`` that of our own, in the cache beside the queue.
    """

    def __init__(self, restart: KeyPlace, maintenance: KeyPlace, down: KeyPlace, connection: str) -> None:
        self._cache, self._restart_key = restart
        self._own, self._down = down
        self._news = f"{self._down.removesuffix('down')}news"
        self._places = [down, maintenance, restart, KeyPlace(self._own, self._news)]
        self._prefix = prefix_of(self._restart_key)
        self._connection = connection

    def read(self, queues: Sequence[str], schedules: Sequence[str] = ()) -> Control:
        """All control keys, in one round trip to each cache; those of schedules only if there are any."""
        laravels = [self._all_paused, *map(self._paused, queues)]
        places = [*self._places, *(KeyPlace(self._cache, key) for key in laravels), *self._pauses(schedules)]
        down, maintenance, restart, news, everything, *rest = _values(places)
        values = dict(zip(queues, rest, strict=False))
        return Control(
            restart=None if restart is None else restart.decode("utf-8", "replace"),
            paused=frozenset(queue for queue, value in values.items() if _is_set(everything) or _is_set(value)),
            down=_is_set(maintenance) or _is_set(down),
            schedules=_paused_of(schedules, rest[len(queues) :]),
            pauses=_pauses_in(values),
            schedule_pauses=_pauses_in(dict(zip(("", *schedules), rest[len(queues) + 1 :], strict=False))),
            down_by=_pause_in(down) if down else None,
            news=None if news is None else news.decode("utf-8", "replace"),
        )

    def restart(self) -> int:
        """Ask every worker on every host to exit and be replaced; returns the stamp."""
        return self._cache.stamp(self._restart_key)

    def pause(self, queue: str, at: float = 0.0, by: str = "") -> None:
        """Pause a queue on all hosts. The key also records when (Unix seconds) and by whom, if given.

        Laravel only checks whether the value is true. Source: QueueManager.php, isPaused (12.40, 13.x).
        """
        self._cache.put(self._paused(queue), _pause_value(at, by) if at else _PHP_TRUE)

    def resume(self, queue: str) -> bool:
        """Continue a queue; ``False`` when it was not paused."""
        return self._cache.remove(self._paused(queue))

    def down(self, at: float = 0.0, by: str = "") -> None:
        """Begin our maintenance mode; when and by whom, as for ``pause``."""
        self._own.put(self._down, _pause_value(at, by) if at else _PHP_TRUE)

    def up(self) -> bool:
        """End our maintenance mode; ``False`` when it was not on."""
        return self._own.remove(self._down)

    def pause_schedule(self, name: str = "", at: float = 0.0, by: str = "") -> None:
        """Pause one schedule on all hosts, or all of ours; when and by whom, as for ``pause``."""
        self._own.put(self._schedule(name), _pause_value(at, by) if at else _PHP_TRUE)

    def resume_schedule(self, name: str = "") -> bool:
        """Resume it, or all; ``False`` when we had not paused it."""
        return self._own.remove(self._schedule(name))

    def announce(self) -> None:
        """Have the steward of every pool look for commands, at once where the store can wake it."""
        self.note_news()
        self._own.wake_stewards()

    def note_news(self) -> None:
        """Have the steward of every pool look for what operators have done, when it reads the control keys next."""
        self._own.stamp(self._news)

    def publish(self, pool: str, facts: Mapping[str, Any]) -> None:
        """Publish this pool to all hosts; ``facts`` must be JSON-ready."""
        self._own.publish(pool, facts)

    def withdraw(self, pool: str) -> None:
        """Remove this pool's notice."""
        self._own.withdraw(pool)

    def note_left(self, facts: Mapping[str, Any]) -> None:
        """Keep for ``LEFT_KEPT`` seconds that a pool has left; ``facts`` as in ``publish``, with ``at``."""
        self._own.note(_LEFT, json.dumps(facts), _MOST_LEFT, LEFT_KEPT)

    def left(self) -> list[dict[str, Any]]:
        """The pools that have left, the latest last."""
        return [facts for text in self._own.notes(_LEFT, _MOST_LEFT) if (facts := notice_in(text))]

    def pools(self, within: float = NOTICE_LASTS) -> list[dict[str, Any]]:
        """The latest facts of all pools, on all hosts, that have published ``within`` these seconds."""
        return sorted(self._own.notices(within), key=lambda facts: (facts["host"], facts["pool"]))

    def _pauses(self, schedules: Sequence[str]) -> list[KeyPlace]:
        """Laravel's pause of all schedules, ours of all, and ours of each; empty without schedules."""
        laravels = KeyPlace(self._cache, f"{self._prefix}{_SCHEDULE_PAUSED}")
        return (
            [laravels, *(KeyPlace(self._own, self._schedule(name)) for name in ("", *schedules))] if schedules else []
        )

    def _schedule(self, name: str) -> str:
        key = f"{self._down.removesuffix('down')}schedule:paused"
        return f"{key}:{name}" if name else key

    @property
    def _all_paused(self) -> str:
        return f"{self._prefix}illuminate:queues:paused"

    def _paused(self, queue: str) -> str:
        return f"{self._prefix}illuminate:queue:paused:{self._connection}:{queue}"


def prefix_of(restart_key: str) -> str:
    """Laravel's cache prefix, if the key ends in Laravel's name; otherwise empty."""
    return restart_key.removesuffix(_RESTART) if restart_key.endswith(_RESTART) else ""


def lock_prefix_of(settings: ConnectionSettings, kind: str) -> str:
    """The prefix of Laravel's locks in a store of this kind, as far as we can know.

    Laravel has one cache prefix for all its stores; in Redis the prefix of all keys comes before it, also in a restart
    key in Redis.
    """
    known, home = prefix_of(settings.restart_key), kind_of(settings.control_url or settings.url)
    if kind == home:
        return known
    return settings.prefix + known if kind == "redis" else known.removeprefix(settings.prefix)


def maintenance_key_of(restart_key: str) -> str:
    """The key of Laravel's maintenance mode, if it is in the same cache as this restart key."""
    return f"{prefix_of(restart_key)}{_MAINTENANCE}"


def notice_by(text: bytes, now: float) -> dict[str, Any] | None:
    """As ``notice_in``, at ``now`` by the store's clock; ``None`` also for one that is from the future.

    A little later than now are those of a server whose place another one has just taken: they count as of now. Whoever
    compares notices with each other takes the latest for the present time, so that one alone would make all others old.
    """
    notice = notice_in(text)
    if notice is None or notice["at"] > now + _AHEAD:
        return None
    return {**notice, "at": min(notice["at"], now)}


def notice_in(text: bytes) -> dict[str, Any] | None:
    """A pool's notice; ``None`` for a text that is damaged or from another program."""
    try:
        notice = strict_json.read_object(text)
    except BadPayload:
        return None
    at, names = notice.get("at"), (notice.get("host"), notice.get("pool"))
    is_sound = isinstance(at, int | float) and 0 <= at < NO_SECOND and all(isinstance(name, str) for name in names)
    return notice if is_sound else None


def instance_in(notice: Mapping[str, Any]) -> str:
    """The pool's instance id; empty in the notice of an older version."""
    found = notice.get("id")
    return found if isinstance(found, str) else ""


def newest_of(notices: Iterable[Mapping[str, Any]]) -> dict[PoolKey, Mapping[str, Any]]:
    """The newest notice of each pool, by host, name and instance.

    Two pools may have the same name, on hosts with the same name: containers on their host's network have its name, and
    each has a process 1. Notices of an older version, which do not tell instances apart, count as one.
    """
    found: dict[PoolKey, Mapping[str, Any]] = {}
    for notice in notices:
        name = notice["host"], notice["pool"], instance_in(notice)
        if name not in found or notice["at"] >= found[name]["at"]:
            found[name] = notice
    return found


def names_of(pools: Iterable[PoolKey], between: str = ":") -> dict[PoolKey, str]:
    """How to address each of these pools: ``HOST:POOL``, with ``#INSTANCE`` only where several have that name."""
    known = list(pools)
    count = Counter((host, pool) for host, pool, _ in known)
    return {
        (host, pool, one): host + between + pool + (f"#{one}" if count[host, pool] > 1 and one else "")
        for host, pool, one in known
    }


def served_in(notices: Iterable[Mapping[str, Any]]) -> frozenset[str] | None:
    """The queues that the pools of these notices serve; ``None`` if one, of an older version, does not list them."""
    found: set[str] = set()
    for notice in notices:
        queues = notice.get("queues")
        if not isinstance(queues, list):
            return None
        found.update(map(str, queues))
    return frozenset(found)


def _pause_value(at: float, by: str) -> bytes:
    """The value of a pause: an ASCII text in PHP's serialization."""
    text = f"{_PAUSED_BY} {int(at)} {by}".encode("ascii", "replace").replace(b'"', b"?")
    return b's:%d:"%b";' % (len(text), text)


def _pauses_in(values: Mapping[str, bytes | None]) -> dict[str, tuple[float, str]]:
    """When and by whom things were paused, of those whose values are ours."""
    return {name: pause for name, value in values.items() if value and (pause := _pause_in(value))}


def _pause_in(value: bytes) -> tuple[float, str] | None:
    """When and by whom a queue was paused, if the value is ours; ``None`` for any other."""
    found = _OUR_PAUSE.fullmatch(value)
    return (float(found[1]), found[2].decode("ascii", "replace")) if found else None


def _paused_of(schedules: Sequence[str], values: Sequence[bytes | None]) -> frozenset[str]:
    """The paused schedules; ``values`` are of the keys in ``_pauses``."""
    is_all = any(map(_is_set, values[:2]))
    return frozenset(name for name, value in zip(schedules, values[2:], strict=True) if is_all or _is_set(value))


def _values(places: Sequence[KeyPlace]) -> list[bytes | None]:
    """The value at each place."""
    found: dict[KeyPlace, bytes | None] = {}
    for cache in dict.fromkeys(place.cache for place in places):
        keys = [place.key for place in places if place.cache is cache]
        found |= {KeyPlace(cache, key): value for key, value in zip(keys, cache.get(keys), strict=True)}
    return [found[place] for place in places]


def _is_set(value: bytes | None) -> bool:
    """Whether a value is set: anything but PHP's null, false, 0 and empty string."""
    return value is not None and value not in (b"", b"0", b"N;", b"b:0;", b"i:0;")
