-- reclaim.lua: give back what a worker reserved without reading the reply (it was lost, or the worker died first).
-- Source:  none; in Laravel such a job waits for retry_after.
-- KEYS     1 ready list   2 reserved zset   3 notify list
-- ARGV     1 test clock, '' = the server's   2 retry_after, seconds   3 the worker's tag
--          4 seconds since it sent the reserve   then the receipts that it knows
-- Returns  the receipts of the jobs that went back to the head of the queue, oldest first
-- The tag must be retired first (join.lua, retire.lua), so that nothing is reserved under it after this search.
-- include: clock lease splice tokens full
local known = {}
for i = 5, #ARGV do known[ARGV[i]] = true end
local since = clock(ARGV[1]) - tonumber(ARGV[4]) + tonumber(ARGV[2]) - 1
local rows = redis.call('zrangebyscore', KEYS[2], since, '+inf', 'WITHSCORES')
local given_back = {}
write_nothing(KEYS[2])
for i = #rows - 1, 1, -2 do
  if is_held(rows[i + 1], tonumber(ARGV[3])) and not known[rows[i]] then
    redis.call('lpush', KEYS[1], unbumped(rows[i]))
    redis.call('zrem', KEYS[2], rows[i])
    table.insert(given_back, 1, rows[i])
  end
end
if #given_back > 0 then pcall(count_tokens, KEYS[1], KEYS[3]) end
return given_back
