-- release.lua: retry a job, now or after a delay.
-- Source:  Illuminate/Queue/LuaScripts.php, release (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list   5 the job's tallies   6 its state
-- ARGV     1 test clock, '' = the server's   2 delay, seconds   3 receipt
--          4 the tally to raise ('exceptions', 'crashes', 'suspects'; '' = none)   5 the stewards' channel
--          6 its worker's tag   7 its state; none = not tracked   8 seconds that the state is kept
-- Returns  1, or 0 when the lease was lost
-- Differs  fenced: Laravel's makes a second copy of a job that another worker holds; without a delay the job is in the
--          ready list at once, not after the next poll; counts how the attempt ended in the same step.
-- include: clock lease put wake tokens full note_state put_off
local now, delay, receipt = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
write_nothing(KEYS[3])
if not is_held(redis.call('zscore', KEYS[3], receipt), tonumber(ARGV[6])) then return 0 end
if ARGV[4] ~= '' then
  redis.call('hincrby', KEYS[5], ARGV[4], 1)
  redis.call('expire', KEYS[5], 86400)
end
put_off(receipt, receipt, now, delay)
return 1
