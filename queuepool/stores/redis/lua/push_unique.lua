-- push_unique.lua: take a unique lock and add its job, both or neither.
-- Source:  Illuminate/Cache/RedisLock.php, acquire; Illuminate/Queue/LuaScripts.php, push and later (13.x)
-- KEYS     1 the lock   2 ready list   3 notify list   4 delayed zset
-- ARGV     1 the lock's owner   2 seconds that it lasts   3 payload   4 test clock, '' = the server's
--          5 delay, seconds   6 the stewards' channel
-- Returns  1, or 0 when the lock is held: nothing was added
-- Differs  Laravel takes the lock, then pushes: a crash in between loses every later dispatch of the job.
-- include: clock put wake
local delay = tonumber(ARGV[5])
redis.call(delay > 0 and 'zcard' or 'llen', KEYS[delay > 0 and 4 or 2]) -- a wrong type fails before the lock is taken
if not redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', math.ceil(tonumber(ARGV[2]) * 1000)) then return 0 end
if delay > 0 then
  local due = clock(ARGV[4]) + delay
  put(KEYS[4], due, ARGV[3])
  wake_if_first(KEYS[4], ARGV[6], due)
else
  redis.call('rpush', KEYS[2], ARGV[3])
  pcall(redis.call, 'rpush', KEYS[3], 1)
end
return 1
