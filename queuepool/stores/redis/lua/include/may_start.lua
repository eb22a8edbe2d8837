-- Whether jobs may start at once. ARGV of each limit: its key, its partition ('-' = none), its number, its seconds per
-- number (0 = for as long as the job's lease lasts).
local function asked_at(limits, first, last)
  local asked = {}
  for i = first, last, 4 do
    local limit = {key = ARGV[i], part = ARGV[i + 1], number = ARGV[i + 2], per = tonumber(ARGV[i + 3])}
    asked[#asked + 1] = limit
    if not rule_of(limits, limit.key) then
      local name = string.match(limit.key, '^[^=]+')
      redis.call('hset', limits.own .. 'limits', name, limit.number .. ' ' .. ARGV[i + 3] .. ' ')
      limits.rules[name] = {number = tonumber(limit.number), per = limit.per}
    end
  end
  return asked
end

-- The granted job whose place a starting one may take, as no worker has taken it for long.
local function stale_at(limits, key)
  return redis.call('zrangebyscore', key_of(limits, 'granted', key), '-inf', limits.now, 'LIMIT', 0, 1)[1]
end

-- Of the keys that were asked, which had no free place, and whether one was kept for the job.
local is_full, is_kept = {}, false

-- A place that was kept for the job, or a free one for which no job waits, or one that was kept for too long.
local function admits(limits, key, job)
  local free, kept = free_places(limits, key)
  is_full[key] = free <= 0
  if kept > 0 and redis.call('zscore', key_of(limits, 'granted', key), job) then
    is_kept = true
    return free >= 0 -- its own place is one of those that are not free; the number may have been lowered since
  end
  if free > 0 then return redis.call('exists', key_of(limits, 'queues', key)) == 0 end
  return free == 0 and stale_at(limits, key) and true
end

local function first_refusing(limits, asked, job)
  for i, limit in ipairs(asked) do
    if not admits(limits, limit.key, job) then return i end
  end
end
