-- clear.lua: drop a queue's ready, delayed and reserved jobs.
-- Source:  Illuminate/Queue/LuaScripts.php, clear (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list
-- ARGV     the Unix second until which the sender waits
-- Returns  how many jobs there were
-- Differs  unlinks, so that the server frees a million rows in the background; does nothing once its sender has given
--          up, so it drops no job that was pushed later.
-- include: late
local jobs = redis.call('llen', KEYS[1]) + redis.call('zcard', KEYS[2]) + redis.call('zcard', KEYS[3])
redis.call('unlink', unpack(KEYS))
return jobs
