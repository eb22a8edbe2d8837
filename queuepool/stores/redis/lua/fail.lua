-- fail.lua: record a job as failed and remove it, both or neither.
-- Source:  Illuminate/Queue/Jobs/Job.php, fail (13.x)
-- KEYS     1 reserved zset   2 failed jobs, hash   3 failed jobs by time, zset   4 the job's tallies
--          then, if anything follows, the keys of follow.lua
-- ARGV     1 test clock, '' = the server's   2 receipt   3 id   4 record, JSON; '' = keep none   5 its worker's tag
--          then, if anything follows, the arguments of follow.lua
-- Returns  1 and how many of the locks were there, or 0 when the lease was lost
-- Differs  Laravel deletes, then records: a crash in between loses the job. Keeps both of two jobs with the same id.
-- include: clock lease full keep_failed release_lock note_state follow
write_nothing(KEYS[1])
if not is_held(redis.call('zscore', KEYS[1], ARGV[2]), tonumber(ARGV[5])) then return 0 end
check_follow(5, 6)
keep_failed(KEYS[2], KEYS[3], ARGV[3], ARGV[4], clock(ARGV[1]))
local there = follow(5, 6)
redis.call('zrem', KEYS[1], ARGV[2])
redis.call('del', KEYS[4])
return 1 + there
