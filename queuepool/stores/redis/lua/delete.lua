-- delete.lua: the end of jobs that were done.
-- Source:  Illuminate/Queue/RedisQueue.php, deleteReserved (13.x)
-- KEYS     the reserved zset of each queue
-- ARGV     for each job: its queue's number, its receipt
-- Returns  for each job 1, or 0 when it was not ours any more
-- Differs  many at once, and says what it did.
local answers = {}
for i = 1, #ARGV, 2 do
  table.insert(answers, redis.call('zrem', KEYS[tonumber(ARGV[i])], ARGV[i + 1]))
end
return answers
