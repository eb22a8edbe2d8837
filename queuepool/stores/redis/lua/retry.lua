-- retry.lua: return a failed job to its queue with all its tries, under its unique lock.
-- Source:  Illuminate/Queue/Console/RetryCommand.php (13.x)
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset   3 ready list   4 notify list
--          then the job's state, if it is tracked   then the lock, if it has one
-- ARGV     1 id   2 payload   3 the record's time   4 the state; '' = not tracked   5 seconds that it is kept
--          6 the lock's owner; '' = it has no lock   7 seconds that it lasts
-- Returns  1, 0 when the record is gone, or -1 when another job holds the lock
-- Differs  one step: Laravel pushes, then forgets; and it takes no lock, so the job may run beside its duplicate.
-- include: splice tokens note_state take_lock
if tonumber(redis.call('zscore', KEYS[2], ARGV[1]) or '') ~= tonumber(ARGV[3]) then return 0 end
redis.call('llen', KEYS[3])
if ARGV[6] ~= '' and not take_lock(KEYS[#KEYS], ARGV[6], ARGV[7]) then return -1 end
redis.call('rpush', KEYS[3], (splice(ARGV[2], none)) or ARGV[2])
redis.call('hdel', KEYS[1], ARGV[1])
redis.call('zrem', KEYS[2], ARGV[1])
if ARGV[4] ~= '' then note_state(KEYS[5], ARGV[4], ARGV[5]) end
pcall(count_tokens, KEYS[3], KEYS[4])
return 1
