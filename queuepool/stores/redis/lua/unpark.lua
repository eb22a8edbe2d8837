-- unpark.lua: put parked jobs back at the tail of their queue; workers park again what still has no place.
-- Source:  none.
-- KEYS     1 parked jobs of the queue, hash   2 ready list   3 notify list   4 delayed zset
-- ARGV     1 test clock, '' = the server's   2 seconds for which they are delayed, 0 = not   then their numbers; what is
--          left of those in lines is passed over when its turn comes
-- Returns  how many there were
-- include: clock tokens full
local back, delay = 0, tonumber(ARGV[2])
local due = delay > 0 and math.ceil(clock(ARGV[1]) + delay)
write_nothing(KEYS[2])
for i = 3, #ARGV do
  local text = redis.call('hget', KEYS[1], ARGV[i])
  if text then
    local payload = string.match(text, '^[^\n]*\n(.*)$')
    -- A copy of the job may be delayed, too.
    local is_delayed = due and redis.call('zadd', KEYS[4], 'NX', due, payload) == 1
    if not is_delayed then redis.call('rpush', KEYS[2], payload) end
    redis.call('hdel', KEYS[1], ARGV[i])
    back = back + 1
  end
end
if back > 0 then pcall(count_tokens, KEYS[2], KEYS[3]) end
return back
