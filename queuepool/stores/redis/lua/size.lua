-- size.lua: how many jobs a queue holds, and its oldest ready one.
-- Source:  Illuminate/Queue/LuaScripts.php, size (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 quarantine list
-- Returns  ready, delayed, reserved, quarantined, the first ready payload or false
-- Differs  returns each part, not only the sum.
return {
  redis.call('llen', KEYS[1]), redis.call('zcard', KEYS[2]), redis.call('zcard', KEYS[3]),
  redis.call('llen', KEYS[4]), redis.call('lindex', KEYS[1], 0),
}
