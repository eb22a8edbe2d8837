-- measure.lua: what a queue holds, for the steward, which asks every few seconds; takes the same time for any length.
-- Source:  none.
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 quarantine list
-- ARGV     1 test clock, '' = the server's   2 most bytes of the payload
-- Returns  ready, delayed, reserved, quarantined, the first ready payload (at most those bytes) or false, the seconds
--          for which the first delayed job has been due (below 0: it is not due), the clock in Unix seconds
-- include: clock
local now = clock(ARGV[1])
local payload = redis.call('lindex', KEYS[1], 0)
local first = redis.call('zrange', KEYS[2], 0, 0, 'WITHSCORES')[2]
return {
  redis.call('llen', KEYS[1]), redis.call('zcard', KEYS[2]), redis.call('zcard', KEYS[3]),
  redis.call('llen', KEYS[4]), payload and string.sub(payload, 1, tonumber(ARGV[2])),
  string.format('%.6f', first and now - tonumber(first) or 0), string.format('%.6f', now),
}
