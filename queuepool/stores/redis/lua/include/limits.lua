-- Limits: how many jobs hold places of a kind at a time, and who waits for one (stores/limits.py).
-- A key of a limit is its name, or NAME=VALUE where each value has its own. Keys in Redis, all with our prefix:
-- `limits`: hash of names, each with its number, its seconds per number (0 = none), the number that an operator has set
-- ('' = none); `limits:places`: hash of holders, each with the keys of its places; `limits:due`: zset of the keys at which
-- a job waits, by the second at which a place may come free by itself; `limits:granted`: hash of jobs that were handed
-- a place, as JOB QUEUE, each as it was parked; `limits:last`: numbers parked jobs and counted starts.
-- Of a key: `limit:held:` zset of holders by the end of their leases, and of counted starts by their seconds, so that they
-- end as the rule has it that is in force then; `limit:granted:` zset of those in `limits:granted`, by the second from
-- which a starting job may take their place; `limit:queues:` list of the queues whose jobs wait, in turn;
-- `limit:ring:KEY QUEUE` list of their partitions, in turn; `limit:lane:KEY PART QUEUE` list of numbers of parked jobs,
-- oldest first. `parked:QUEUE`: hash of parked jobs by number: the digest of the id, then key and partition of each limit,
-- LF, payload.
local GRANT_LASTS, MOST_LOOKS, MOST_SEARCHED = 0.2, 100, 1000

-- Given: how our keys begin, how those of queues do, test clock.
local function open_limits(own, queues, time)
  return {own = own, queues = queues, now = clock(time), freed = {}, rules = {}, refusing = {}}
end

local function key_of(limits, kind, key) return limits.own .. 'limit:' .. kind .. ':' .. key end

-- The number in force, and the seconds for which a start counts, 0 = a job counts while it runs; false: it is forgotten.
local function rule_of(limits, key)
  local name = string.match(key, '^[^=]+')
  if limits.rules[name] == nil then
    local known = redis.call('hget', limits.own .. 'limits', name) or ''
    local number, per, by_hand = string.match(known, '^(%d+) (%S+) (%d*)$')
    number = tonumber(by_hand ~= '' and by_hand or number)
    limits.rules[name] = number and {number = number, per = tonumber(per)} or false
  end
  return limits.rules[name]
end

-- Key and partition of each of the limits of a parked job.
local function asked_in(text)
  local asked = {}
  for key, part in string.gmatch(string.match(text, '^%S+([^\n]*)'), ' (%S+) (%S+)') do
    asked[#asked + 1] = {key = key, part = part}
  end
  return asked
end

-- The score up to which holders of this key have ended.
local function last_ended(limits, key)
  local rule = rule_of(limits, key)
  return limits.now - (rule and rule.per or 0)
end

local function drop_ended(limits, key)
  local held, last, dropped = key_of(limits, 'held', key), last_ended(limits, key), false
  while true do
    local ended = redis.call('zrangebyscore', held, '-inf', last, 'LIMIT', 0, 1000)
    if #ended == 0 then return dropped end
    redis.call('zrem', held, unpack(ended))
    redis.call('hdel', limits.own .. 'limits:places', unpack(ended))
    dropped = true
  end
end

-- How many jobs may start at this key, below 1: none; and how many places are kept for some that are about to.
local function free_places(limits, key)
  local held, rule = key_of(limits, 'held', key), rule_of(limits, key)
  local kept = redis.call('zcard', key_of(limits, 'granted', key))
  if not rule then return 1, kept end
  local free = rule.number - redis.call('zcard', held) - kept
  if free <= 0 and drop_ended(limits, key) then free = rule.number - redis.call('zcard', held) - kept end
  return free, kept
end

-- Keep no place for this job; returns whether some were, which free_as_well hands on.
local function end_grant(limits, job)
  local text = redis.call('hget', limits.own .. 'limits:granted', job)
  if not text then return false end
  redis.call('hdel', limits.own .. 'limits:granted', job)
  for _, limit in ipairs(asked_in(text)) do
    redis.call('zrem', key_of(limits, 'granted', limit.key), job)
    limits.freed[#limits.freed + 1] = limit.key
  end
  return true
end

local function line_up(limits, limit, queue, number)
  local place = limit.key .. ' ' .. queue
  if redis.call('rpush', key_of(limits, 'lane', limit.key .. ' ' .. limit.part .. ' ' .. queue), number) > 1 then return end
  if redis.call('lpush', key_of(limits, 'ring', place), limit.part) > 1 then return end
  redis.call('lpush', key_of(limits, 'queues', limit.key), queue)
end

-- The queue whose turn it is; `passed`: those that are passed over.
local function next_queue(limits, key, passed)
  local queues = key_of(limits, 'queues', key)
  if not passed then return redis.call('rpoplpush', queues, queues) end
  for _ = 1, redis.call('llen', queues) do
    local queue = redis.call('rpoplpush', queues, queues)
    if not passed[queue] then return queue end
  end
end

-- Take the next job out of the line of this queue: its number, its part of the ring, and how it is parked. Those that
-- were taken out by hand are passed over; nil if so many were that others must go on first.
local function next_parked(limits, key, queue)
  local ring = key_of(limits, 'ring', key .. ' ' .. queue)
  local part = redis.call('rpop', ring)
  local lane, parked = key_of(limits, 'lane', key .. ' ' .. part .. ' ' .. queue), limits.own .. 'parked:' .. queue
  local number, text
  for _ = 1, MOST_LOOKS do
    number = redis.call('lpop', lane)
    text = number and redis.call('hget', parked, number)
    if text or not number then break end
  end
  if redis.call('exists', lane) == 1 then
    redis.call('lpush', ring, part)
  elseif redis.call('exists', ring) == 0 then
    redis.call('lrem', key_of(limits, 'queues', key), 1, queue)
  end
  return number, part, text
end

-- The other limit that has no place; `key` has one.
local function refusing(limits, asked, key)
  for _, limit in ipairs(asked) do
    if limit.key ~= key and free_places(limits, limit.key) <= 0 then return limit end
  end
end

local function grant(limits, text, asked, queue)
  local job = string.match(text, '^%S+') .. ' ' .. queue
  end_grant(limits, job) -- of a copy, if there is one
  redis.call('hset', limits.own .. 'limits:granted', job, text)
  for _, limit in ipairs(asked) do
    redis.call('zadd', key_of(limits, 'granted', limit.key), limits.now + GRANT_LASTS, job)
  end
end

-- Put them at the head of their queues, in their order. One whose queue is a key of the wrong type, or denied, waits on.
local function make_ready(limits, key, granted)
  for i = #granted, 1, -1 do
    local one = granted[i]
    local ready = limits.queues .. one.queue
    if type(redis.pcall('lpush', ready, one.payload)) == 'number' then
      redis.pcall('rpush', ready .. ':notify', 1)
    else
      limits.refusing[one.queue] = true
      end_grant(limits, string.match(one.text, '^%S+') .. ' ' .. one.queue)
      redis.call('hset', limits.own .. 'parked:' .. one.queue, one.number, one.text)
      line_up(limits, {key = key, part = one.part}, one.queue, one.number)
    end
  end
end

-- The next second at which places of this kind end here, `per` seconds after that in the set.
local function next_end(limits, kind, key, per)
  local last = string.format('(%.17g', limits.now - per)
  local first = redis.call('zrangebyscore', key_of(limits, kind, key), last, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(first[2] or 'inf') + per
end

-- When a steward must look at this key: a place may come free by itself, or jobs may be left that could have one.
local function note_due(limits, key, is_done)
  local due = limits.own .. 'limits:due'
  if redis.call('exists', key_of(limits, 'queues', key)) == 0 then
    redis.call('zrem', due, key)
    return
  end
  local at = limits.now
  if is_done then
    local held = redis.call('zrange', key_of(limits, 'held', key), 0, 0, 'WITHSCORES')[2]
    local granted = redis.call('zrange', key_of(limits, 'granted', key), 0, 0, 'WITHSCORES')[2]
    local rule = rule_of(limits, key)
    local per = rule and rule.per or 0
    at = math.min(tonumber(held or 'inf') + per, tonumber(granted or 'inf'))
    if at <= limits.now or at == math.huge then -- a job that was handed a place waits for a worker
      at = math.min(limits.now + 1, next_end(limits, 'held', key, per), next_end(limits, 'granted', key, 0))
    end
  end
  redis.call('zadd', due, string.format('%.6f', at), key)
end

-- Hand a place of this key to the next of this queue. One that another limit refuses goes to the line of that.
-- Returns the job that has a place now; nil if it was taken out by hand, or moved.
local function hand_to(limits, key, queue)
  local number, part, text = next_parked(limits, key, queue)
  if not text then return end
  local asked = asked_in(text)
  local refused = refusing(limits, asked, key)
  if refused then
    line_up(limits, refused, queue, number)
    note_due(limits, refused.key, true)
    return
  end
  redis.call('hdel', limits.own .. 'parked:' .. queue, number)
  grant(limits, text, asked, queue)
  return {queue = queue, part = part, number = number, text = text, payload = string.match(text, '^[^\n]*\n(.*)$')}
end

-- Hand the free places of this key to those that wait; `passed`: queues that are passed over.
local function hand_on(limits, key, passed)
  if next(limits.refusing) then passed = limits.refusing end
  local granted, free, is_done = {}, free_places(limits, key), false
  for _ = 1, MOST_LOOKS do
    local queue = free > 0 and next_queue(limits, key, passed)
    is_done = not queue
    if is_done then break end
    local job = hand_to(limits, key, queue)
    if job then
      granted[#granted + 1] = job
      free = free - 1
    end
  end
  make_ready(limits, key, granted)
  note_due(limits, key, is_done)
end

-- Hand on what end_grant has freed, but not at the key `but`.
local function free_as_well(limits, but)
  for _ = 1, MOST_LOOKS do
    local key = table.remove(limits.freed)
    if not key then return end
    if key ~= but and redis.call('exists', key_of(limits, 'queues', key)) == 1 then hand_on(limits, key) end
  end
  for _, key in ipairs(limits.freed) do redis.call('zadd', limits.own .. 'limits:due', 'XX', limits.now, key) end
end

local function parked_text(job, asked, payload)
  local words = {job}
  for i, limit in ipairs(asked) do words[i + 1] = limit.key .. ' ' .. limit.part end
  return table.concat(words, ' ') .. '\n' .. payload
end

local function park(limits, text, refused, queue)
  local number = redis.call('incr', limits.own .. 'limits:last')
  redis.call('hset', limits.own .. 'parked:' .. queue, number, text)
  line_up(limits, refused, queue, number)
end

local function leave(limits, holder)
  local places = limits.own .. 'limits:places'
  local keys = redis.call('hget', places, holder)
  if not keys then return end
  redis.call('hdel', places, holder)
  for key in string.gmatch(keys, '%S+') do
    redis.call('zrem', key_of(limits, 'held', key), holder)
    limits.freed[#limits.freed + 1] = key
  end
  free_as_well(limits)
end
