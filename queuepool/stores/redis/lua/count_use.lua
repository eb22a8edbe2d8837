-- count_use.lua: count a use by one of Laravel's rate limiters, unless its window is full.
-- Source:  Illuminate/Cache/RateLimiter.php, tooManyAttempts and hit (13.x); Illuminate/Cache/RedisStore.php
-- KEYS     1 the counter   2 its timer
-- ARGV     1 test clock, '' = the server's   2 most uses   3 seconds of a window; 0 = count nothing
-- Returns  seconds until the window ends if it is full, else -1
-- Differs  one step: of two that count at once, none is counted beyond the most.
-- include: clock
local now, most, seconds = math.floor(clock(ARGV[1])), tonumber(ARGV[2]), tonumber(ARGV[3])
local uses, ends = tonumber(redis.call('get', KEYS[1]) or ''), tonumber(redis.call('get', KEYS[2]) or '')
if (uses or 0) >= most then
  if ends then return math.max(ends - now, 0) end
  uses = redis.call('del', KEYS[1]) == 0 and uses or nil
end
if seconds == 0 then return -1 end
if not ends then redis.call('set', KEYS[2], now + seconds, 'EX', seconds) end
if uses and redis.call('ttl', KEYS[1]) > 0 then
  redis.call('incr', KEYS[1])
else
  redis.call('set', KEYS[1], 1, 'EX', seconds)
end
return -1
