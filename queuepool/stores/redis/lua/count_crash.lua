-- count_crash.lua: raise the crashes of a job.
-- Source:  none.
-- KEYS     1 the tallies
-- Returns  how many there are then
-- include: full
write_nothing(KEYS[1])
local crashes = redis.call('hincrby', KEYS[1], 'crashes', 1)
redis.call('expire', KEYS[1], 86400)
return crashes
