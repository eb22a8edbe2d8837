-- quarantine.lua: move to the quarantine a reserved payload that the worker found not to be a job.
-- Source:  none; Laravel's pop loses such a payload.
-- KEYS     1 reserved zset   2 quarantine list
-- ARGV     1 test clock, '' = the server's   2 receipt   3 reason, one word   4 its worker's tag
-- Returns  1, or 0 when the lease was lost
-- include: clock lease splice full
write_nothing(KEYS[1])
if not is_held(redis.call('zscore', KEYS[1], ARGV[2]), tonumber(ARGV[4])) then return 0 end
redis.call('rpush', KEYS[2], string.format('%.6f', clock(ARGV[1])) .. ' ' .. ARGV[3] .. ' ' .. unbumped(ARGV[2]))
redis.call('zrem', KEYS[1], ARGV[2])
return 1
