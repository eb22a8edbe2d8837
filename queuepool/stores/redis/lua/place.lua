-- place.lua: the id of this place, for jobs that come from other stores; given by the first call.
-- Source:  none.
-- KEYS     1 the id
-- ARGV     1 what it becomes, if there is none
-- Returns  the id
local known = redis.call('get', KEYS[1])
if known then return known end
redis.call('set', KEYS[1], ARGV[1])
return ARGV[1]
