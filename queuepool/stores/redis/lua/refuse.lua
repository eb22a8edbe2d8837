-- refuse.lua: never push a job that was to come from another store, unless it has come.
-- Source:  none.
-- KEYS     1 what became of the job
-- ARGV     1 seconds for which it is known
-- Returns  what has become of it: came or refused
local known = redis.call('get', KEYS[1])
if known then return known end
redis.call('set', KEYS[1], 'refused', 'EX', ARGV[1])
return 'refused'
