-- release.lua: retry a job, now or after a delay.
-- Source:  Illuminate/Queue/LuaScripts.php, release (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list   5 the job's tallies   6 its state
-- ARGV     1 test clock, '' = the server's   2 delay, seconds   3 receipt
--          4 the tally to raise ('exceptions', 'crashes', 'suspects'; '' = none)   5 the stewards' channel
--          6 its worker's tag   7 its state; none = not tracked   8 seconds that the state is kept
-- Returns  1, or 0 when the lease was lost
-- Differs  fenced: Laravel's makes a second copy of a job that another worker holds; without a delay the job is in the
--          ready list at once, not after the next poll; counts how the attempt ended in the same step.
-- include: clock lease put wake tokens full note_state
local now, delay, receipt = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
write_nothing(KEYS[3])
if not is_held(redis.call('zscore', KEYS[3], receipt), tonumber(ARGV[6])) then return 0 end
if ARGV[4] ~= '' then
  redis.call('hincrby', KEYS[5], ARGV[4], 1)
  redis.call('expire', KEYS[5], 86400)
end
if delay > 0 then
  put(KEYS[2], now + delay, receipt)
else
  redis.call('rpush', KEYS[1], receipt)
end
redis.call('zrem', KEYS[3], receipt)
note_state(KEYS[6], ARGV[7], ARGV[8])
if delay > 0 then
  wake_if_first(KEYS[2], ARGV[5], now + delay)
else
  pcall(count_tokens, KEYS[1], KEYS[4])
end
return 1
