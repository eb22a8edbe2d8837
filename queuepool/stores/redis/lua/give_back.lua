-- give_back.lua: put reserved jobs that never began back to the head of their queue, attempts as they were.
-- Source:  none; Laravel lets them wait for retry_after.
-- KEYS     1 ready list   2 reserved zset   3 notify list
-- ARGV     for each job, oldest first: the tag of its worker, its receipt
-- Returns  for each job 1, or 0 when it was not ours any more
-- include: lease splice tokens full
local answers = {}
write_nothing(KEYS[2])
for i = #ARGV, 2, -2 do
  local ours = is_held(redis.call('zscore', KEYS[2], ARGV[i]), tonumber(ARGV[i - 1]))
  answers[i / 2] = ours and 1 or 0
  if ours then
    redis.call('lpush', KEYS[1], unbumped(ARGV[i]))
    redis.call('zrem', KEYS[2], ARGV[i])
  end
end
pcall(count_tokens, KEYS[1], KEYS[3])
return answers
