-- flows_under_way.lua: how far flows are that have begun and not ended, without a look at their members.
-- Source:  none.
-- KEYS     the facts of each, and its payloads that wait
-- ARGV     none
-- Returns  for each {name, Unix second of its creation, members that wait, those that run, all}; false for any other
local found = {}
for i = 1, #KEYS, 2 do
  local state, ended, name, created, active, total =
    unpack(redis.call('hmget', KEYS[i], 'state', 'ended', 'name', 'created', 'active', 'total'))
  local is_under_way = state and state ~= 'building' and not ended
  found[#found + 1] = is_under_way and {name, created, redis.call('hlen', KEYS[i + 1]), active, total}
end
return found
