-- measure.lua: what a queue holds, for the steward that looks every few seconds; takes the same time for any length.
-- Source:  ours
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 quarantine list
-- ARGV     1 test clock, '' = the server's
-- Returns  ready, delayed, reserved, quarantined, the first ready payload or false, the seconds for which the first
--          delayed job has been due (below 0: it is not), the clock in Unix seconds
-- include: clock
local now = clock(ARGV[1])
local first = redis.call('zrange', KEYS[2], 0, 0, 'WITHSCORES')[2]
return {
  redis.call('llen', KEYS[1]), redis.call('zcard', KEYS[2]), redis.call('zcard', KEYS[3]),
  redis.call('llen', KEYS[4]), redis.call('lindex', KEYS[1], 0),
  string.format('%.6f', first and now - tonumber(first) or 0), string.format('%.6f', now),
}
