-- horizon_jobs.lua: list jobs that have ended on the dashboard of Laravel Horizon.
-- Source:  Horizon 5.29: RedisJobRepository::completed, ::failed, ::updateRetryInformationOnParent, ::trimRecentJobs,
--          ::trimFailedJobs. Differs: one step for all; a job that is done is not listed as failed any more, as
--          `queuepool retry` keeps its id; the lists are trimmed here where no master of Horizon does it; and a job whose
--          id, which a producer chooses, leads to another key of Horizon's is left out.
-- KEYS     1 masters, sorted set   2 recent_jobs   3 pending_jobs   4 completed_jobs   5 failed_jobs
--          6 recent_failed_jobs, sorted sets   7... of each job: its hash; that of the job that it retries, or its own
-- ARGV     1 how the names of our masters begin   2... of each job: id, when it was created, when it ended,
--          1 = it failed, how many fields follow, these with their values
-- Returns  nothing.
local MASTER_LIVES, SHORT, LONG = 14, 3600, 604800
local recent, pending, completed, failed, recent_failed = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now, at = tonumber(redis.call('time')[1]), 2

local function tell(parent, id, status)
  local is_sound, retries = pcall(cjson.decode, redis.pcall('hget', parent, 'retried_by') or '')
  if not is_sound or type(retries) ~= 'table' then return end
  for _, retry in pairs(retries) do
    if type(retry) == 'table' and retry.id == id then retry.status = status end
  end
  redis.call('hset', parent, 'retried_by', cjson.encode(retries))
end

local function is_free(key, id)
  return redis.call('exists', key) == 0 or redis.pcall('hget', key, 'id') == id
end

for i = 7, #KEYS, 2 do
  local id, created, ended, has_failed = ARGV[at], -ARGV[at + 1], -ARGV[at + 2], ARGV[at + 3] == '1'
  local last = at + 4 + ARGV[at + 4]
  if is_free(KEYS[i], id) then
    redis.call('hset', KEYS[i], unpack(ARGV, at + 5, last))
    redis.call('expire', KEYS[i], has_failed and LONG or SHORT)
    for _, list in ipairs({pending, completed, failed, recent_failed}) do redis.call('zrem', list, id) end
    for _, list in ipairs(has_failed and {failed, recent_failed} or {completed}) do redis.call('zadd', list, ended, id) end
    redis.call('zadd', recent, 'NX', created, id)
    if KEYS[i + 1] ~= KEYS[i] then tell(KEYS[i + 1], id, has_failed and 'failed' or 'completed') end
  end
  at = last + 1
end

for _, name in ipairs(redis.call('zrangebyscore', KEYS[1], now - MASTER_LIVES, '+inf')) do
  if string.sub(name, 1, #ARGV[1]) ~= ARGV[1] then return end
end
for _, list in ipairs({recent, completed}) do redis.call('zremrangebyscore', list, SHORT - now, '+inf') end
for _, list in ipairs({failed, recent_failed}) do redis.call('zremrangebyscore', list, LONG - now, '+inf') end
