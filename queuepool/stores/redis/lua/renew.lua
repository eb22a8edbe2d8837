-- renew.lua: extend leases to retry_after from now, and their workers' tags with them.
-- Source:  none; invisible to Laravel, as the members do not change.
-- KEYS     1 the tags, zset   then the reserved zset of each queue
-- ARGV     1 test clock, '' = the server's   2 retry_after, seconds   then for each job: its queue's number,
--          the tag of its worker, its receipt
-- Returns  for each job 1, or 0 when the lease had already ended
-- include: clock lease refusal full tags
local now, retry_after, answers = clock(ARGV[1]), tonumber(ARGV[2]), {}
write_nothing(KEYS[1])
for i = 3, #ARGV, 3 do
  local reserved, tag, receipt = KEYS[tonumber(ARGV[i]) + 1], tonumber(ARGV[i + 1]), ARGV[i + 2]
  -- A key of the wrong type has ended only the leases of its own queue.
  local score = redis.pcall('zscore', reserved, receipt)
  if is_refusal(score) then redis.call('zscore', reserved, receipt) end
  local held = type(score) == 'string' and is_held(score, tag)
  if held then
    redis.call('zadd', reserved, 'XX', lease_end(now, retry_after, tag, 1), receipt)
    use_tag(KEYS[1], tag, now, retry_after)
  end
  table.insert(answers, held and 1 or 0)
end
return answers
