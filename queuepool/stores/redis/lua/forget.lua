-- forget.lua: drop failed jobs.
-- Source:  Illuminate/Queue/Failed/FailedJobProviderInterface.php, forget and flush (13.x)
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset
-- ARGV     the ids
-- Returns  how many there were
local dropped = 0
for _, id in ipairs(ARGV) do
  dropped = dropped + redis.call('hdel', KEYS[1], id)
  redis.call('zrem', KEYS[2], id)
end
return dropped
