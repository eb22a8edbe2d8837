-- put_value.lua: set one of the control keys.
-- Source:  Illuminate/Cache/RedisStore.php, forever (13.x)
-- KEYS     1 the key
-- ARGV     1 its value   2 the Unix second until which the sender waits
-- Returns  nothing
-- include: late
redis.call('set', KEYS[1], ARGV[1])
