-- fail.lua: record a job as failed and end it, both or neither.
-- Source:  Illuminate/Queue/Jobs/Job.php, fail (13.x)
-- KEYS     1 reserved zset   2 failed jobs, hash   3 failed jobs by time, zset   4 the job's tallies
-- ARGV     1 test clock, '' = the server's   2 receipt   3 id   4 record, JSON; '' = keep none
-- Returns  1, or 0 when the job was not ours any more
-- Differs  Laravel deletes first and records after: a crash in between loses the job.
-- include: clock
if not redis.call('zscore', KEYS[1], ARGV[2]) then return 0 end
if ARGV[4] ~= '' then
  redis.call('hset', KEYS[2], ARGV[3], ARGV[4])
  redis.call('zadd', KEYS[3], clock(ARGV[1]), ARGV[3])
end
redis.call('zrem', KEYS[1], ARGV[2])
redis.call('del', KEYS[4])
return 1
