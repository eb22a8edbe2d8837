-- horizon_show.lua: show a pool on the dashboard of Laravel Horizon, and add to its metrics.
-- Source:  Horizon 5.29: RedisMasterSupervisorRepository::update, RedisSupervisorRepository::update,
--          LuaScripts::updateMetrics, and flushExpired of the first two. Differs: one step for all, and each metric
--          takes many jobs at once.
-- KEYS     1 masters, sorted set   2 supervisors, sorted set   3 the master, hash   4 its supervisor, hash
--          5 measured_jobs, set   6 measured_queues, set   7... the metrics of jobs, then those of queues, hashes
-- ARGV     1 the master's name   2 the supervisor's   3, 4 fields of these, JSON   5 how many metrics are of jobs
--          6... of each metric: how many jobs were done, and the milliseconds that they took in all
-- Returns  nothing.
local MASTER_LASTS, SUPERVISOR_LASTS, NAME_LASTS = 15, 30, 14
local now = tonumber(redis.call('time')[1])

local function show(set, hash, name, text, lasts)
  for field, value in pairs(cjson.decode(text)) do redis.call('hset', hash, field, value) end
  redis.call('zadd', set, now, name)
  redis.call('expire', hash, lasts)
  redis.call('zremrangebyscore', set, '-inf', now - NAME_LASTS) -- of the dead: a Horizon does it where one runs
end

show(KEYS[1], KEYS[3], ARGV[1], ARGV[3], MASTER_LASTS)
show(KEYS[2], KEYS[4], ARGV[2], ARGV[4], SUPERVISOR_LASTS)
for i = 7, #KEYS do
  local number, took = tonumber(ARGV[6 + 2 * (i - 7)]), tonumber(ARGV[7 + 2 * (i - 7)])
  local known = redis.call('hmget', KEYS[i], 'throughput', 'runtime')
  local before = tonumber(known[1]) or 0
  local mean = (before * (tonumber(known[2]) or 0) + took) / (before + number)
  redis.call('hset', KEYS[i], 'throughput', before + number, 'runtime', tostring(mean))
  redis.call('sadd', i - 6 <= tonumber(ARGV[5]) and KEYS[5] or KEYS[6], KEYS[i])
end
