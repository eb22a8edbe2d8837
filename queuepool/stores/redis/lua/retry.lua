-- retry.lua: return failed jobs to their queues with all their tries, each under its unique lock.
-- Source:  Illuminate/Queue/Console/RetryCommand.php (13.x)
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset   then of each job: ready list, notify list, its state, its
--          lock
-- ARGV     for each job: id, payload, the record's time, the state ('' = not tracked), seconds that it is kept, the
--          lock's owner ('' = it has no lock), seconds that it lasts
-- Returns  for each job 1, 0 when the record is gone, or -1 when another job holds the lock
-- Differs  one step: Laravel pushes, then forgets; and it takes no lock, so the job may run beside its duplicate.
-- include: splice tokens note_state take_lock
local ITS_KEYS, ITS_ARGS = 4, 7

local function put_back(ready, state, lock, id, payload, at, text, kept, owner, lasts)
  if tonumber(redis.call('zscore', KEYS[2], id) or '') ~= tonumber(at) then return 0 end
  redis.call('llen', ready)
  if owner ~= '' and not take_lock(lock, owner, lasts) then return -1 end
  redis.call('rpush', ready, (splice(payload, none)) or payload)
  redis.call('hdel', KEYS[1], id)
  redis.call('zrem', KEYS[2], id)
  note_state(state, text, kept)
  return 1
end

local answers, queues = {}, {}
for number = 1, #ARGV / ITS_ARGS do
  local key, arg = number * ITS_KEYS - 1, (number - 1) * ITS_ARGS + 1
  answers[number] = put_back(KEYS[key], KEYS[key + 2], KEYS[key + 3], unpack(ARGV, arg, arg + ITS_ARGS - 1))
  queues[KEYS[key]] = KEYS[key + 1]
end
for ready, notify in pairs(queues) do pcall(count_tokens, ready, notify) end
return answers
