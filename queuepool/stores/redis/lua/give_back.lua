-- give_back.lua: return reserved jobs that never began to the head of their queue, with their former attempts.
-- Source:  none; in Laravel they wait for retry_after.
-- KEYS     1 ready list   2 reserved zset   3 notify list   4 tallies whose crashes are raised; none = raise none
-- ARGV     for each job, oldest first: the tag of its worker, its receipt
-- Returns  for each job 1, or 0 when its lease was lost
-- include: lease splice tokens full
local answers = {}
write_nothing(KEYS[2])
for i = #ARGV, 2, -2 do
  local ours = is_held(redis.call('zscore', KEYS[2], ARGV[i]), tonumber(ARGV[i - 1]))
  answers[i / 2] = ours and 1 or 0
  if ours then
    if KEYS[4] then
      redis.call('hincrby', KEYS[4], 'crashes', 1)
      redis.call('expire', KEYS[4], 86400)
    end
    redis.call('lpush', KEYS[1], unbumped(ARGV[i]))
    redis.call('zrem', KEYS[2], ARGV[i])
  end
end
pcall(count_tokens, KEYS[1], KEYS[3])
return answers
