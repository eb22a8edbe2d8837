-- record.lua: store the record of a job that failed on another server.
-- Source:  none.
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset
-- ARGV     1 test clock, '' = the server's   2 id   3 record, JSON   4 the end of that JSON, with the failure's own id
--          5 the failure's own id
-- Returns  1, or 0 when this failure is already recorded
-- include: clock full
-- Any number of jobs may have the same id. Only so many of their records are looked at; others have the failures' ids.
-- All of these are, since a retry may have dropped an earlier one meanwhile.
local NUMBERED = 32
local names, free = {ARGV[2]}, nil
for number = 2, NUMBERED do names[number] = ARGV[2] .. '-' .. number end
names[NUMBERED + 1] = ARGV[2] .. '-' .. ARGV[5]
write_nothing(KEYS[2])
for i, existing in ipairs(redis.call('hmget', KEYS[1], unpack(names))) do
  if not existing then
    free = free or names[i]
  elseif i > NUMBERED or string.sub(existing, -#ARGV[4]) == ARGV[4] then
    return 0
  end
end
redis.call('hset', KEYS[1], free, ARGV[3])
redis.call('zadd', KEYS[2], clock(ARGV[1]), free)
return 1
