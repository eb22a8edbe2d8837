-- postpone.lua: put a job off, now or for a delay, as if it had not begun.
-- Source:  none; in Laravel a job that its middleware releases has used up an attempt.
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list   5 unused   6 the job's state
-- ARGV     as of release.lua; 4 is unused
-- Returns  1, or 0 when the lease was lost
-- include: clock lease splice put wake tokens full note_state put_off
local now, delay, receipt = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
write_nothing(KEYS[3])
if not is_held(redis.call('zscore', KEYS[3], receipt), tonumber(ARGV[6])) then return 0 end
put_off(unbumped(receipt), receipt, now, delay)
return 1
