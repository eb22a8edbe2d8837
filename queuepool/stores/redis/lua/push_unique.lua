-- push_unique.lua: take a unique lock and add its job, both or neither.
-- Source:  Illuminate/Cache/RedisLock.php, acquire; Illuminate/Queue/LuaScripts.php, push and later (13.x)
-- KEYS     1 the lock   2 ready list   3 notify list   4 delayed zset
-- ARGV     1 the lock's owner   2 seconds that it lasts   3 payload   4 test clock, '' = the server's
--          5 delay, seconds   6 the stewards' channel
-- Returns  1, or 0 when the lock is held: nothing was added
-- Differs  Laravel takes the lock, then pushes: a crash in between loses every later dispatch of the job.
-- include: clock put wake add
local delay = tonumber(ARGV[5])
check_add(KEYS[2], KEYS[4], delay)
if not redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', math.ceil(tonumber(ARGV[2]) * 1000)) then return 0 end
add(KEYS[2], KEYS[3], KEYS[4], ARGV[3], ARGV[4], delay, ARGV[6])
return 1
