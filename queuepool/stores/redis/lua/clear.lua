-- clear.lua: drop a queue's jobs, ready, delayed and reserved.
-- Source:  Illuminate/Queue/LuaScripts.php, clear (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list
-- ARGV     the second until which its sender waits
-- Returns  how many jobs there were
-- Differs  unlinks: the server frees a million rows beside its work; drops nothing that was pushed after it was given up.
-- include: late
local jobs = redis.call('llen', KEYS[1]) + redis.call('zcard', KEYS[2]) + redis.call('zcard', KEYS[3])
redis.call('unlink', unpack(KEYS))
return jobs
