-- record.lua: keep the record of a job that failed elsewhere.
-- Source:  none.
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset
-- ARGV     1 test clock, '' = the server's   2 id   3 record, JSON   4 its payload, as it stands in that JSON
-- Returns  the id that it is kept under, '' when it is there already
-- include: clock full
local id, number = ARGV[2], 1
write_nothing(KEYS[2])
while true do
  local there = redis.call('hget', KEYS[1], id)
  if not there then break end
  if string.find(there, ARGV[4], 1, true) then return '' end
  number = number + 1
  id = ARGV[2] .. '-' .. number
end
redis.call('hset', KEYS[1], id, ARGV[3])
redis.call('zadd', KEYS[2], clock(ARGV[1]), id)
return id
