-- step.lua: keep what steps of a running job have returned, or how far its cursors are.
-- Source:  none; invisible to Laravel.
-- KEYS     1 reserved zset   2 the kept steps of the job, hash
-- ARGV     1 receipt   2 its worker's tag   3 seconds that they are kept   then the name and the value of each
-- Returns  1, or 0 when the lease was lost
-- include: lease full
write_nothing(KEYS[1])
if not is_held(redis.call('zscore', KEYS[1], ARGV[1]), tonumber(ARGV[2])) then return 0 end
redis.call('hset', KEYS[2], unpack(ARGV, 4))
redis.call('expire', KEYS[2], ARGV[3])
return 1
