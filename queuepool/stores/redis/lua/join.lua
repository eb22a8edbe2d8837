-- join.lua: give a worker the next tag.
-- Source:  none.
-- KEYS     1 the last tag
-- ARGV     1 where to begin, when there is none
-- Returns  the tag, not yet bounded
-- Begun anywhere: after a flush the first tags must not be those of workers that are still there.
-- include: full
write_nothing(KEYS[1])
redis.call('set', KEYS[1], ARGV[1], 'NX')
return redis.call('incr', KEYS[1])
