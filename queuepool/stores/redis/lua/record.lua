-- record.lua: store the record of a job that failed on another server.
-- Source:  none.
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset
-- ARGV     1 test clock, '' = the server's   2 id   3 record, JSON   4 the failure's own id, as written in that JSON
-- Returns  1, or 0 when this failure is already recorded
-- include: clock full
local id, number = ARGV[2], 1
write_nothing(KEYS[2])
while true do
  local existing = redis.call('hget', KEYS[1], id)
  if not existing then break end
  if string.find(existing, ARGV[4], 1, true) then return 0 end
  number = number + 1
  id = ARGV[2] .. '-' .. number
end
redis.call('hset', KEYS[1], id, ARGV[3])
redis.call('zadd', KEYS[2], clock(ARGV[1]), id)
return 1
