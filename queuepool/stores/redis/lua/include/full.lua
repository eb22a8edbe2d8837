-- Start with a write that changes nothing: a full server (maxmemory, noeviction) refuses commands that may take memory,
-- but not once a script has written. Scripts that only move or end jobs must run there, or nothing would free memory; so
-- must those that write something small about a job that a worker holds, as it would wait for them.
local function write_nothing(key)
  redis.pcall('zremrangebyrank', key, 1, 0)
end
