-- count_duration.lua: count a use in the window of one of Laravel's duration limiters, unless that is full.
-- Source:  Illuminate/Redis/Limiters/DurationLimiter.php, luaScript and tooManyAttemptsLuaScript (13.x). Same fields on
--          the wire.
-- KEYS     1 the window, hash
-- ARGV     1 test clock, '' = the server's   2 most uses   3 seconds of a window, 0 = count none
-- Returns  seconds until the window ends if it is full, else -1
-- Differs  counts none that is refused; compares times as numbers; the server's clock, not PHP's.
-- include: clock
local now, most, seconds = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local window = redis.call('hmget', KEYS[1], 'start', 'end', 'count')
local begins, ends = tonumber(window[1] or ''), tonumber(window[2] or '')
if begins and ends and begins <= now and now <= ends then
  if (tonumber(window[3] or '') or 0) >= most then return math.ceil(ends - math.floor(now)) end
  if seconds > 0 then redis.call('hincrby', KEYS[1], 'count', 1) end
  return -1
end
if seconds == 0 then return -1 end
local start = math.floor(now)
redis.call('hset', KEYS[1], 'start', start, 'end', start + seconds, 'count', 1)
redis.call('expire', KEYS[1], seconds * 2)
return -1
