-- recorded.lua: remove from the outbox a failure that the failed store has recorded.
-- Source:  none.
-- KEYS     1 waiting records, hash   2 their ids by time, zset
-- ARGV     1 the failure's id
-- Returns  1, or 0 when it was not there
redis.call('hdel', KEYS[1], ARGV[1])
return redis.call('zrem', KEYS[2], ARGV[1])
