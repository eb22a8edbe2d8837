-- publish.lua: publish a pool's notice to all hosts.
-- Source:  none.
-- KEYS     1 the pools' notices, hash
-- ARGV     1 the pool   2 its notice, JSON
-- Returns  1 when it is new, else 0
-- include: full
write_nothing(KEYS[1])
return redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
