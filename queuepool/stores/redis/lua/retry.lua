-- retry.lua: return a failed job to its queue with all its tries.
-- Source:  Illuminate/Queue/Console/RetryCommand.php (13.x)
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset   3 ready list   4 notify list   5 the job's state
-- ARGV     1 id   2 payload   3 the record's time   4 the state; none = not tracked   5 seconds that it is kept
-- Returns  1, or 0 when the record is gone
-- Differs  one step: Laravel pushes, then forgets.
-- include: splice tokens note_state
if tonumber(redis.call('zscore', KEYS[2], ARGV[1]) or '') ~= tonumber(ARGV[3]) then return 0 end
redis.call('rpush', KEYS[3], (splice(ARGV[2], none)) or ARGV[2])
redis.call('hdel', KEYS[1], ARGV[1])
redis.call('zrem', KEYS[2], ARGV[1])
note_state(KEYS[5], ARGV[4], ARGV[5])
pcall(count_tokens, KEYS[3], KEYS[4])
return 1
