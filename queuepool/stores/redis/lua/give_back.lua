-- give_back.lua: put reserved jobs that never began back to the head of their queue, attempts as they were.
-- Source:  none; Laravel lets them wait for retry_after.
-- KEYS     1 ready list   2 reserved zset   3 notify list
-- ARGV     1 the tag of the worker that reserved them, '' = whoever did   then the receipts, oldest first
-- Returns  for each job 1, or 0 when it was not ours any more
-- Fenced by the tag too: what is given back and reserved again has the very same bytes.
-- include: lease splice tokens full
local answers = {}

local function is_ours(score)
  return score and (ARGV[1] == '' or tag_of(tonumber(score)) == tonumber(ARGV[1]))
end

write_nothing(KEYS[2])
for i = #ARGV, 2, -1 do
  answers[i - 1] = is_ours(redis.call('zscore', KEYS[2], ARGV[i])) and 1 or 0
  if answers[i - 1] == 1 then
    redis.call('lpush', KEYS[1], unbumped(ARGV[i]))
    redis.call('zrem', KEYS[2], ARGV[i])
  end
end
pcall(count_tokens, KEYS[1], KEYS[3])
return answers
