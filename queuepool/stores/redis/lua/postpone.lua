-- postpone.lua: put a job off, now or for a delay, as if it had not begun.
-- Source:  none; in Laravel a job that its middleware releases has used up an attempt.
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list   5 unused   6 the job's state
-- ARGV     as of release.lua; 4 is unused
-- Returns  1, or 0 when the lease was lost
-- include: clock lease splice put wake tokens full note_state
local now, delay, receipt = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
write_nothing(KEYS[3])
if not is_held(redis.call('zscore', KEYS[3], receipt), tonumber(ARGV[6])) then return 0 end
local job = unbumped(receipt)
if delay > 0 then
  put(KEYS[2], now + delay, job)
else
  redis.call('rpush', KEYS[1], job)
end
redis.call('zrem', KEYS[3], receipt)
note_state(KEYS[6], ARGV[7], ARGV[8])
if delay > 0 then
  wake_if_first(KEYS[2], ARGV[5], now + delay)
else
  pcall(count_tokens, KEYS[1], KEYS[4])
end
return 1
