-- delete.lua: remove done jobs.
-- Source:  Illuminate/Queue/RedisQueue.php, deleteReserved (13.x)
-- KEYS     the reserved zset of each queue
-- ARGV     for each job: its queue's number, the tag of its worker, its receipt
-- Returns  for each job 1, or 0 when its lease was lost
-- Differs  many jobs at once, fenced by the tag; returns what it did.
-- include: lease
local answers = {}
for i = 1, #ARGV, 3 do
  local reserved, receipt = KEYS[tonumber(ARGV[i])], ARGV[i + 2]
  local ours = is_held(redis.call('zscore', reserved, receipt), tonumber(ARGV[i + 1]))
  table.insert(answers, ours and redis.call('zrem', reserved, receipt) or 0)
end
return answers
