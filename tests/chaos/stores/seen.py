"""Places of limits as they are in a store at one moment: which are free, who waits for one, and which have no lease.

It is read past the package, and at once: what is no moment proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import redis
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool, QueuePool

from queuepool.payload.lease import Lease, LeaseRow
from queuepool.payload.limits import holding, name_of
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.statements import tag_in
from tests.chaos.limited import KEYS, LIMITED_QUEUE, QUEUE
from tests.chaos.world import WIDE

#: where there are jobs with limits
QUEUES = (QUEUE, LIMITED_QUEUE, WIDE)


class Seen(NamedTuple):
    """A key: its free places, and the first in each line of those that wait there."""

    key: str
    free: int
    first: frozenset[str]


class Moment(NamedTuple):
    keys: list[Seen]
    #: holder and key of places whose lease is over; each should have ended with it
    without_lease: list[tuple[str, str]]


Look = Callable[[], Moment]


def look_at(url: str, prefix: str) -> Look:
    """What looks at the store at this address."""
    return _redis(url, prefix) if url.startswith(("redis:", "unix:")) else _tables(url)


_SCRIPT = """
local own, queues, time = ARGV[1] .. 'queuepool:', ARGV[1] .. 'queues:', redis.call('time')
local now = time[1] + time[2] / 1000000

local function seen_at(key)
  local first = {}
  for _, queue in ipairs(redis.call('lrange', own .. 'limit:queues:' .. key, 0, -1)) do
    for _, part in ipairs(redis.call('lrange', own .. 'limit:ring:' .. key .. ' ' .. queue, 0, -1)) do
      local number = redis.call('lindex', own .. 'limit:lane:' .. key .. ' ' .. part .. ' ' .. queue, 0)
      if number and redis.call('hexists', own .. 'parked:' .. queue, number) == 1 then
        first[#first + 1] = queue .. ' ' .. number
      end
    end
  end
  local known = redis.call('hget', own .. 'limits', string.match(key, '^[^=]+')) or ''
  -- Starts that a rate counts are kept by when they were, places of jobs by when they end.
  local number, per, by_hand = string.match(known, '^(%d+) (%S+) (%d*)$')
  local ended = string.format('(%.6f', now - (tonumber(per) or 0))
  local held = redis.call('zcount', own .. 'limit:held:' .. key, ended, '+inf')
  local free = (tonumber(by_hand) or tonumber(number) or 0) - held - redis.call('zcard', own .. 'limit:granted:' .. key)
  return {key, free, first}
end

local keys, places, leases = {}, {}, {}
for i = 5, #ARGV do keys[#keys + 1] = seen_at(ARGV[i]) end
local flat = redis.call('hgetall', own .. 'limits:places')
for i = 1, #flat, 2 do
  for key in string.gmatch(flat[i + 1], '%S+') do
    local ends = redis.call('zscore', own .. 'limit:held:' .. key, flat[i])
    if ends and tonumber(ends) > now then places[#places + 1] = {flat[i], key} end
  end
end
for i = 2, 4 do leases[i - 1] = redis.call('zrange', queues .. ARGV[i] .. ':reserved', 0, -1, 'WITHSCORES') end
return {keys, places, leases}
"""
#: as in ``lease.lua``: ends of leases are on this grid, and tags below it
_GRID, _TAGS = 16, 131072


def _redis(url: str, prefix: str) -> Look:
    client: Any = redis.Redis.from_url(url, socket_timeout=5, retry=None)

    def look() -> Moment:
        keys, places, leases = client.eval_ro(_SCRIPT, 0, prefix, *QUEUES, *KEYS)
        held = {_holder(queue, *pair) for queue, flat in zip(QUEUES, leases, strict=True) for pair in _pairs(flat)}
        named = [(holder.decode(), key.decode()) for holder, key in places]
        seen = [Seen(key.decode(), free, frozenset(map(bytes.decode, first))) for key, free, first in keys]
        return Moment(seen, [one for one in named if one[0] not in held])

    return look


def _pairs(flat: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _holder(queue: str, receipt: bytes, score: bytes) -> str:
    tag = int(float(score) * _GRID % 1 * _TAGS)
    return holding(Lease(queue, receipt, tag)).holder


_NUMBERS = "SELECT key_, number, by_hand FROM queuepool_limits WHERE number IS NOT NULL"
_PLACES = "SELECT key_, holder, until, granted FROM queuepool_places"
_FIRST = "SELECT key_, queue, part, min(id) FROM queuepool_parked GROUP BY key_, queue, part"
_LEASES = f"""SELECT queue, payload, available_at, id, attempts FROM jobs
WHERE reserved_at IS NOT NULL AND queue IN {QUEUES}"""


def _tables(url: str) -> Look:
    address = SqlClient(url).engine.url
    is_sqlite = address.get_backend_name() == "sqlite"
    # A file may be replaced by another one of its name.
    engine = create_engine(address, poolclass=NullPool if is_sqlite else QueuePool)

    def look() -> Moment:
        with engine.connect().execution_options(
            isolation_level="SERIALIZABLE" if is_sqlite else "REPEATABLE READ"
        ) as connection:
            if is_sqlite:  # its driver begins none for queries
                connection.exec_driver_sql("BEGIN")
            return _moment(connection)

    return look


def _moment(connection: Connection) -> Moment:
    key_ = "`key`" if connection.dialect.name in ("mysql", "mariadb") else '"key"'
    before = time.time()
    numbers, places, first, leases = (
        connection.execute(text(one.replace("key_", key_))).all() for one in (_NUMBERS, _PLACES, _FIRST, _LEASES)
    )
    now = time.time()
    known = {name: number if by_hand is None else by_hand for name, number, by_hand in numbers}
    taken = [key for key, _, until, granted in places if granted is not None or until > before]
    lines: dict[str, set[str]] = {}
    for key, queue, _, number in first:
        lines.setdefault(key, set()).add(f"{queue} {number}")
    seen = [Seen(key, known.get(name_of(key), 0) - taken.count(key), frozenset(lines.get(key, ()))) for key in KEYS]
    held = {
        holding(Lease(queue, bytes_of(payload), tag_in(mark), LeaseRow(number, attempts))).holder
        for queue, payload, mark, number, attempts in leases
    }
    # Starts that a rate counts stay without a lease; their words have a second part.
    mine = [(holder, key) for key, holder, until, granted in places if granted is None and until > now]
    return Moment(seen, [one for one in mine if " " not in one[0] and one[0] not in held])
