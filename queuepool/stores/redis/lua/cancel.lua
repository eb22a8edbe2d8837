-- cancel.lua: record a waiting job as failed and remove it, both or neither.
-- Source:  none; to Laravel the job was never there.
-- KEYS     1 ready list   2 delayed zset   3 notify list   4 failed jobs, hash   5 failed jobs by time, zset
--          6 the job's tallies   then, if anything follows, the keys of follow.lua
-- ARGV     1 test clock, '' = the server's   2 the job's bytes   3 id   4 record, JSON; '' = keep none
--          then, if anything follows, the arguments of follow.lua
-- Returns  1 and how many of the locks were there, or 0 when it waits no longer
-- include: clock full keep_failed release_lock note_state follow
write_nothing(KEYS[2])
-- Fail before anything is written if the record could not be: what is removed must be recorded.
redis.call('hexists', KEYS[4], ARGV[3])
redis.call('zcard', KEYS[5])
check_follow(7, 5)
if redis.call('lrem', KEYS[1], 1, ARGV[2]) == 0 and redis.call('zrem', KEYS[2], ARGV[2]) == 0 then return 0 end
keep_failed(KEYS[4], KEYS[5], ARGV[3], ARGV[4], clock(ARGV[1]))
local there = follow(7, 5)
redis.call('del', KEYS[6])
if redis.call('llen', KEYS[1]) == 0 then redis.call('del', KEYS[3]) end
return 1 + there
