-- created.lua: when flows were created.
-- Source:  none.
-- KEYS     the facts of each
-- ARGV     none
-- Returns  for each the Unix second; false if it is gone
local times = {}
for i, key in ipairs(KEYS) do times[i] = redis.call('hmget', key, 'created')[1] end
return times
