-- flow_heads.lua: what flows are listed by.
-- Source:  none.
-- KEYS     the facts of each
-- ARGV     none
-- Returns  for each the Unix second of its creation, its state and its name, or three times false if it is gone
local heads = {}
for i, key in ipairs(KEYS) do heads[i] = redis.call('hmget', key, 'created', 'state', 'name') end
return heads
