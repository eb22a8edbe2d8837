-- Move at most `most` due jobs to the tail of the ready list; returns how many.
local CHUNK = 100 -- unpack's stack is finite

local function move_due(source, ready, now, most)
  local due = redis.call('zrangebyscore', source, '-inf', now, 'LIMIT', 0, most)
  if #due == 0 then return 0 end
  -- Add before removing, here as everywhere: a key of the wrong type stops a script midway.
  for first = 1, #due, CHUNK do
    redis.call('rpush', ready, unpack(due, first, math.min(first + CHUNK - 1, #due)))
  end
  redis.call('zremrangebyrank', source, 0, #due - 1)
  return #due
end

-- The earlier of `earliest` and the first score in `source`; nil when there is neither.
local function first_due(source, earliest)
  local first = redis.call('zrange', source, 0, 0, 'WITHSCORES')[2]
  first = first and tonumber(first)
  if not first or (earliest and earliest < first) then return earliest end
  return first
end
