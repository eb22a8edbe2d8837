-- push_with.lua: add jobs with a delay, with their states, or under a unique lock: all or nothing.
-- Source:  Illuminate/Queue/LuaScripts.php, push and later; Illuminate/Cache/RedisLock.php, acquire (13.x)
-- KEYS     1 ready list   2 notify list; with a delay instead: 1 delayed zset   then the state of each job, if they are
--          tracked   then the lock, if there is one
-- ARGV     1 test clock, '' = the server's   2 delay, seconds, 0 = none   3 the stewards' channel
--          4 how many jobs   5 the lock's owner, '' = no lock   then the payloads
--          then, if they are tracked: seconds that the states are kept, and the states
--          then, with a lock: seconds that it lasts
-- Returns  1, or 0 when the lock is held: nothing was added
-- Differs  Laravel takes the lock, then pushes: a crash in between loses every later dispatch of the job. Delays are by
--          the server's clock, with fractions of a second; two jobs are never merged; the stewards are notified. The
--          state is written with the job, so its producer always finds it.
-- include: clock put wake note_state
local delay, count, owner = tonumber(ARGV[2]), tonumber(ARGV[4]), ARGV[5]
local due = delay > 0 and clock(ARGV[1]) + delay
-- First, as a key of the wrong type must fail before anything is written.
redis.call(due and 'zcard' or 'llen', KEYS[1])
if owner ~= '' and not redis.call('set', KEYS[#KEYS], owner, 'NX', 'PX', math.ceil(tonumber(ARGV[#ARGV]) * 1000)) then
  return 0
end
for i = 1, count do
  if due then
    put(KEYS[1], due, ARGV[5 + i])
  else
    redis.call('rpush', KEYS[1], ARGV[5 + i])
    pcall(redis.call, 'rpush', KEYS[2], 1)
  end
  note_state(KEYS[(due and 1 or 2) + i], ARGV[6 + count + i], ARGV[6 + count])
end
if due then wake_if_first(KEYS[1], ARGV[3], due) end
return 1
