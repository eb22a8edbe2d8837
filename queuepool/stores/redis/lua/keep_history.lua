-- keep_history.lua: keep a pool's text for one bucket of time.
-- Source:  none.
-- KEYS     1 the bucket, hash
-- ARGV     1 the writer   2 its text   3 seconds that the bucket is kept from now on
-- Returns  1 when it is the writer's first text there, else 0
-- include: full
write_nothing(KEYS[1])
local is_new = redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
redis.call('expire', KEYS[1], ARGV[3])
return is_new
