-- push.lua: add jobs to the tail of a queue.
-- Source:  Illuminate/Queue/LuaScripts.php, push (13.x). Same bytes on the wire.
-- KEYS     1 ready list   2 notify list
-- ARGV     the payloads
-- Returns  how many jobs are ready
-- Differs  many payloads in one call; succeeds even if a wake-up token cannot be written.
for _, payload in ipairs(ARGV) do
  redis.call('rpush', KEYS[1], payload)
  pcall(redis.call, 'rpush', KEYS[2], 1)
end
return redis.call('llen', KEYS[1])
