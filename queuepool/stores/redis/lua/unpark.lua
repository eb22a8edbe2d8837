-- unpark.lua: put parked jobs back at the tail of their queue; workers park again what still has no place.
-- Source:  none.
-- KEYS     1 parked jobs of the queue, hash   2 ready list   3 notify list
-- ARGV     their numbers; what is left of those in lines is passed over when its turn comes
-- Returns  how many there were
-- include: tokens full
local back = 0
write_nothing(KEYS[2])
for _, number in ipairs(ARGV) do
  local text = redis.call('hget', KEYS[1], number)
  if text then
    redis.call('rpush', KEYS[2], string.match(text, '^[^\n]*\n(.*)$'))
    redis.call('hdel', KEYS[1], number)
    back = back + 1
  end
end
if back > 0 then pcall(count_tokens, KEYS[2], KEYS[3]) end
return back
