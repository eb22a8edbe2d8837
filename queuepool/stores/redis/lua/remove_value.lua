-- remove_value.lua: remove one of the control keys.
-- Source:  Illuminate/Cache/RedisStore.php, forget (13.x)
-- KEYS     1 the key
-- ARGV     the Unix second until which the sender waits
-- Returns  1, or 0 when it was not there
-- include: late
return redis.call('del', KEYS[1])
