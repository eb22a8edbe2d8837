-- Before anything else a write that changes nothing: a full server (maxmemory, noeviction) refuses what may take memory,
-- but not once a script has written. What only moves or ends jobs goes on there, or nothing would ever make room.
local function write_nothing(key)
  redis.pcall('zremrangebyrank', key, 1, 0)
end
