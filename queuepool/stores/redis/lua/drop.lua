-- drop.lua: drop records of failed jobs, and no later ones of the same jobs.
-- Source:  Illuminate/Queue/Failed/FailedJobProviderInterface.php, forget and flush (13.x)
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset
-- ARGV     for each record: its id, its time
-- Returns  how many there were
-- Differs  Laravel's goes by the id alone, and may drop a job that has failed again since it was read.
local dropped = 0
for i = 1, #ARGV, 2 do
  if tonumber(redis.call('zscore', KEYS[2], ARGV[i]) or '') == tonumber(ARGV[i + 1]) then
    dropped = dropped + redis.call('hdel', KEYS[1], ARGV[i])
    redis.call('zrem', KEYS[2], ARGV[i])
  end
end
return dropped
