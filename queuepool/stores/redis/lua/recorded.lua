-- recorded.lua: remove a failure from the outbox, as the failed store has it.
-- Source:  none.
-- KEYS     1 records that wait, hash   2 their ids by time, zset
-- ARGV     1 the failure's id
-- Returns  1, or 0 when it was not there
redis.call('hdel', KEYS[1], ARGV[1])
return redis.call('zrem', KEYS[2], ARGV[1])
