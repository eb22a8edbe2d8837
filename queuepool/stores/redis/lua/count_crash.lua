-- count_crash.lua: raise a job's crashes by one.
-- Source:  none.
-- KEYS     1 the tallies
-- Returns  the new number
-- include: full
write_nothing(KEYS[1])
local crashes = redis.call('hincrby', KEYS[1], 'crashes', 1)
redis.call('expire', KEYS[1], 86400)
return crashes
