-- limit_keys.lua: at which keys of limits jobs hold places or wait, and in which lines.
-- Source:  none.
-- KEYS     1 limits at which a job waits, by the second of the next look   2 places of holders, hash
-- ARGV     1-3 those of limits.lua   4 a limit's name, '' = of all   5 most keys   6 most lines, at least one for each key
-- Returns  for each key: {key, places that are held, places that are granted, whether there are more lines, then of each
--          line in turn its queue, its partition, how many wait and the number of the first}
-- Reads only. What was taken out by hand counts until its turn comes.
-- include: clock limits
local limits, name, most = open_limits(ARGV[1], ARGV[2], ARGV[3]), ARGV[4], tonumber(ARGV[5])
local MOST_READ, MOST_STALE = 10000, 10
local found, known = {}, {}

local function note(key)
  if known[key] or #found == most or (name ~= '' and string.match(key, '^[^=]+') ~= name) then return end
  known[key] = true
  found[#found + 1] = key
end

for _, key in ipairs(redis.call('zrange', KEYS[1], 0, MOST_READ - 1)) do note(key) end
local places = redis.call('hgetall', KEYS[2])
for i = 2, #places, 2 do
  for key in string.gmatch(places[i], '%S+') do note(key) end
end

local each = math.max(1, math.floor(tonumber(ARGV[6]) / math.max(1, #found)))

local function first_of(lane, queue)
  local numbers = redis.call('lrange', lane, 0, MOST_STALE - 1)
  for _, number in ipairs(numbers) do
    if redis.call('hmget', limits.own .. 'parked:' .. queue, number)[1] then return number end
  end
  return numbers[1] or '0'
end

-- The next in turn is the last of a list. Returns whether there are more lines than were added.
local function add_lines(row, key)
  local queues = redis.call('lrange', key_of(limits, 'queues', key), -each, -1)
  for i = #queues, 1, -1 do
    local ring, left = key_of(limits, 'ring', key .. ' ' .. queues[i]), each - (#row - 4) / 4
    if left == 0 then return true end
    local parts = redis.call('lrange', ring, -left, -1)
    for j = #parts, 1, -1 do
      local lane = key_of(limits, 'lane', key .. ' ' .. parts[j] .. ' ' .. queues[i])
      local line = {queues[i], parts[j], redis.call('llen', lane), first_of(lane, queues[i])}
      for _, word in ipairs(line) do row[#row + 1] = word end
    end
    if redis.call('llen', ring) > left then return true end
  end
  return redis.call('llen', key_of(limits, 'queues', key)) > each
end

for i, key in ipairs(found) do
  local held = key_of(limits, 'held', key)
  local ended = #redis.call('zrangebyscore', held, '-inf', last_ended(limits, key))
  local row = {key, redis.call('zcard', held) - ended, redis.call('zcard', key_of(limits, 'granted', key)), 0}
  row[4] = add_lines(row, key) and 1 or 0
  found[i] = row
end
return found
