-- push_tracked.lua: add jobs with their states, and take a unique lock if one is given: all or nothing.
-- Source:  Illuminate/Queue/LuaScripts.php, push and later (13.x); the states are invisible to Laravel.
-- KEYS     1 ready list   2 notify list   3 delayed zset   then the state of each job   then the lock, if any
-- ARGV     1 test clock, '' = the server's   2 delay, seconds   3 the stewards' channel
--          4 seconds that the states are kept   5 how many jobs   then their payloads   then their states
--          then, with a lock: its owner, the seconds that it lasts
-- Returns  1, or 0 when the lock is held: nothing was added
-- Differs  the state is written with the job, so it is never unknown to its producer.
-- include: clock put wake add note_state
local delay, count = tonumber(ARGV[2]), tonumber(ARGV[5])
check_add(KEYS[1], KEYS[3], delay)
if KEYS[count + 4] and not redis.call('set', KEYS[count + 4], ARGV[2 * count + 6], 'NX', 'PX',
    math.ceil(tonumber(ARGV[2 * count + 7]) * 1000)) then
  return 0
end
for i = 1, count do
  add(KEYS[1], KEYS[2], KEYS[3], ARGV[5 + i], ARGV[1], delay, ARGV[3])
  note_state(KEYS[3 + i], ARGV[5 + count + i], ARGV[4])
end
return 1
