-- enter.lua: give a reserved job a place of each of its limits, or else park it until a place is handed to it.
-- Source:  none. To Laravel, a parked job is in no queue.
-- KEYS     1 reserved zset   2 places of holders, hash
-- ARGV     1 receipt   2 its worker's tag   3-5 those of limits.lua   6 holder   7 digest of the job's id   8 queue
--          9 a random word for this start   then those of its limits (may_start.lua)
-- Returns  0 = it has entered, -1 = the lease was lost, or the number of the limit that has refused it: it is parked
-- A repeated call finds the places that it has taken.
-- include: clock lease full splice limits may_start
write_nothing(KEYS[1])
local score = redis.call('zscore', KEYS[1], ARGV[1])
if not is_held(score, tonumber(ARGV[2])) then return -1 end
local limits, holder, queue = open_limits(unpack(ARGV, 3, 5)), ARGV[6], ARGV[8]
local job = ARGV[7] .. ' ' .. queue
if redis.call('hexists', KEYS[2], holder) == 1 then return 0 end

local asked, start = asked_at(limits, 10, #ARGV), holder .. ' ' .. ARGV[9] -- each counts, also under one lease
if asked[1].per > 0 and redis.call('zscore', key_of(limits, 'held', asked[1].key), start) then return 0 end
local refused = first_refusing(limits, asked, job)
if refused then
  if is_kept then end_grant(limits, job) end
  -- In this order: what is denied, or a key of the wrong type, must leave the job where it is.
  park(limits, parked_text(ARGV[7], asked, unbumped(ARGV[1])), asked[refused], queue)
  redis.call('zrem', KEYS[1], ARGV[1])
  hand_on(limits, asked[refused].key)
  free_as_well(limits)
  return refused
end

local lasting = {}
if is_kept then end_grant(limits, job) end
for _, limit in ipairs(asked) do
  -- A job that was handed a place may ask for more than when it was parked.
  local is_short = is_full[limit.key] and (not is_kept or free_places(limits, limit.key) <= 0)
  if is_short then end_grant(limits, stale_at(limits, limit.key) or '') end
  local held = key_of(limits, 'held', limit.key)
  if limit.per > 0 then
    local per = rule_of(limits, limit.key).per
    -- Where other code has made a concurrency of it, the start counts like a lease that ends by itself.
    redis.call('zadd', held, per > 0 and limits.now or limits.now + limit.per, start)
    if per > 0 then redis.call('expire', held, math.ceil(per) + 1) end
  else
    redis.call('zadd', held, score, holder)
    redis.call('persist', held) -- it ends with its period if this was a rate before
    lasting[#lasting + 1] = limit.key
  end
end
if #lasting > 0 then redis.call('hset', KEYS[2], holder, table.concat(lasting, ' ')) end
free_as_well(limits)
return 0
