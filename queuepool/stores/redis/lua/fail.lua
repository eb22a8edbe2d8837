-- fail.lua: record a job as failed and remove it, both or neither.
-- Source:  Illuminate/Queue/Jobs/Job.php, fail (13.x)
-- KEYS     1 reserved zset   2 failed jobs, hash   3 failed jobs by time, zset   4 the job's tallies
--          then, if anything follows, the keys of follow.lua
-- ARGV     1 test clock, '' = the server's   2 receipt   3 id   4 record, JSON; '' = keep none   5 its worker's tag
--          then, if anything follows, the arguments of follow.lua
-- Returns  1 and how many of the locks were there, or 0 when the lease was lost
-- Differs  Laravel deletes, then records: a crash in between loses the job. Keeps both of two jobs with the same id.
-- include: clock lease full release_lock note_state follow
write_nothing(KEYS[1])
if not is_held(redis.call('zscore', KEYS[1], ARGV[2]), tonumber(ARGV[5])) then return 0 end
check_follow(5, 6)
if ARGV[4] ~= '' then
  -- An id may be pushed twice: the second job must not replace the first. From the 33rd on their numbers have gaps, as
  -- of a thousand jobs with one id each would try a thousand numbers.
  local id, number = ARGV[3], 1
  while redis.call('hexists', KEYS[2], id) == 1 do
    number = number < 32 and number + 1 or number + redis.call('hlen', KEYS[2])
    id = ARGV[3] .. '-' .. number
  end
  redis.call('hset', KEYS[2], id, ARGV[4])
  redis.call('zadd', KEYS[3], clock(ARGV[1]), id)
end
local there = follow(5, 6)
redis.call('zrem', KEYS[1], ARGV[2])
redis.call('del', KEYS[4])
return 1 + there
