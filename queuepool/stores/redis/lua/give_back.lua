-- give_back.lua: put reserved jobs that never began back to the head of their queue, attempts as they were.
-- Source:  none; Laravel lets them wait for retry_after.
-- KEYS     1 ready list   2 reserved zset   3 notify list
-- ARGV     the receipts, oldest first
-- Returns  for each job 1, or 0 when it was not ours any more
-- include: splice tokens
local answers = {}
for i = #ARGV, 1, -1 do
  answers[i] = redis.call('zscore', KEYS[2], ARGV[i]) and 1 or 0
  if answers[i] == 1 then
    redis.call('lpush', KEYS[1], unbumped(ARGV[i]))
    redis.call('zrem', KEYS[2], ARGV[i])
  end
end
pcall(count_tokens, KEYS[1], KEYS[3])
return answers
