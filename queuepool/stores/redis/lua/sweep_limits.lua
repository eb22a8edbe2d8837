-- sweep_limits.lua: hand on the places that have come free by themselves: a lease has ended, a period is over, nobody
-- has taken a job that was handed a place.
-- Source:  none.
-- KEYS     1 limits at which a job waits, by the second of the next look
-- ARGV     1-3 those of limits.lua   4 most limits   5 1 = also where places are held or kept and no job waits: a host
--          may be lost   then, to look at these at once: names, or '' for all
-- Returns  seconds to the next look, '' = no job waits
-- include: clock full limits
local limits = open_limits(unpack(ARGV, 1, 3))
write_nothing(KEYS[1])

-- Whether the job that was handed a place still waits; else it runs without the limit, or was taken out. Others that were
-- handed places later may have come before it, again and again: it goes back to the head.
local function waits(job)
  local text = redis.call('hget', limits.own .. 'limits:granted', job)
  if not text then return false end
  local ready, payload = limits.queues .. string.match(job, '^%S+ (.*)$'), string.match(text, '^[^\n]*\n(.*)$')
  local place = redis.pcall('lpos', ready, payload, 'MAXLEN', MOST_SEARCHED)
  if type(place) == 'number' and place > 0 then
    redis.call('lrem', ready, 1, payload)
    redis.call('lpush', ready, payload)
  end
  return type(place) == 'number'
end

local function look(key)
  drop_ended(limits, key)
  local granted, untaken, passed = key_of(limits, 'granted', key), {}, {}
  for _, job in ipairs(redis.call('zrangebyscore', granted, '-inf', limits.now, 'LIMIT', 0, MOST_LOOKS)) do
    if waits(job) then
      untaken[#untaken + 1] = job
      passed[string.match(job, '^%S+ (.*)$')] = true
    elseif not end_grant(limits, job) then
      redis.call('zrem', granted, job)
    end
  end
  -- No worker takes jobs of these queues: let those of others have the places.
  for _, job in ipairs(untaken) do
    if free_places(limits, key) > 0 or not next_queue(limits, key, passed) then break end
    end_grant(limits, job)
  end
  hand_on(limits, key, passed)
  hand_on(limits, key)
  free_as_well(limits, key)
end

if ARGV[5] == '1' then
  local places = redis.call('hgetall', limits.own .. 'limits:places')
  for i = 2, #places, 2 do
    for key in string.gmatch(places[i], '%S+') do redis.call('zadd', KEYS[1], limits.now, key) end
  end
  local granted = redis.call('hgetall', limits.own .. 'limits:granted')
  for i = 2, #granted, 2 do
    for _, limit in ipairs(asked_in(granted[i])) do redis.call('zadd', KEYS[1], limits.now, limit.key) end
  end
end
for i = 6, #ARGV do
  for _, key in ipairs(redis.call('zrange', KEYS[1], 0, -1)) do
    if ARGV[i] == '' or string.match(key, '^[^=]+') == ARGV[i] then redis.call('zadd', KEYS[1], limits.now, key) end
  end
end
for _, key in ipairs(redis.call('zrangebyscore', KEYS[1], '-inf', limits.now, 'LIMIT', 0, ARGV[4])) do look(key) end
local first = redis.call('zrange', KEYS[1], 0, 0, 'WITHSCORES')[2]
return first and string.format('%.6f', math.max(tonumber(first) - limits.now, 0)) or ''
