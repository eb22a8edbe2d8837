-- push_limited.lua: add jobs with limits: those that could start go to the tail of their queue, each with its places,
-- and the others line up at once, so that a flood of them never stands in the queue before other jobs.
-- Source:  Illuminate/Queue/LuaScripts.php, push (13.x)
-- KEYS     1 ready list   2 notify list   3 parked jobs of the queue, hash
-- ARGV     1-3 those of limits.lua   4 queue   then for each job: its payload, the digest of its id, how many words its
--          limits have, those words (may_start.lua)
-- Returns  how many were parked
-- include: clock limits may_start
local limits, queue, at, parked = open_limits(unpack(ARGV, 1, 3)), ARGV[4], 5, 0
-- A key of the wrong type, or what is denied, must fail before anything is written.
redis.call('llen', KEYS[1])
redis.call('hlen', KEYS[3])
redis.call('hget', limits.own .. 'limits', '')
while at <= #ARGV do
  local last = at + 2 + tonumber(ARGV[at + 2])
  local payload, job, asked = ARGV[at], ARGV[at + 1], asked_at(limits, at + 3, last)
  local text = parked_text(job, asked, payload)
  local refused = first_refusing(limits, asked, '')
  if refused then
    park(limits, text, asked[refused], queue)
    hand_on(limits, asked[refused].key)
    parked = parked + 1
  else
    for _, limit in ipairs(asked) do
      if is_full[limit.key] then end_grant(limits, stale_at(limits, limit.key) or '') end
    end
    grant(limits, text, asked, queue)
    redis.call('rpush', KEYS[1], payload)
    pcall(redis.call, 'rpush', KEYS[2], 1)
  end
  at = last + 1
end
free_as_well(limits)
return parked
