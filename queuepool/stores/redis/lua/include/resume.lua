-- A flow that has failed goes on, as a member of it is to run again (flow.lua).
-- Seconds: ten years.
local FOR_EVER = 315360000

-- What was cancelled waits again. As this reads all letters, it is done only if one may be cancelled.
local function revive(flow)
  if fact(flow, 'cut') == '' then return end
  local all, active = redis.call('hgetall', flow.letters), 0
  for i = 1, #all, 2 do
    local letter = string.sub(all[i + 1], 1, 1)
    if letter == 'c' then redis.call('hset', flow.letters, all[i], 'w' .. string.sub(all[i + 1], 2)) end
    if letter == 'r' then active = active + 1 end
  end
  local unpushed = tonumber(fact(flow, 'roots')) - tonumber(fact(flow, 'next'))
  redis.call('hset', flow.facts, 'active', active + unpushed)
  redis.call('hdel', flow.facts, 'cut')
end

-- The flow goes on, with a day at least; what was ready meanwhile is left over.
local function resume(flow)
  flow.state, flow.is_over = 'running', nil
  local deadline = math.max(tonumber(fact(flow, 'deadline')), flow.now + 86400)
  redis.call('hset', flow.facts, 'state', 'running', 'deadline', deadline)
  redis.call('hdel', flow.facts, 'ended', 'skips')
  redis.call('zrem', flow.stopped, flow.id)
  redis.call('zadd', begun(flow), flow.now, flow.id)
  for _, key in ipairs({flow.facts, flow.letters, flow.waiting, flow.results, flow.held}) do redis.call('expire', key, FOR_EVER) end
  redis.call('zadd', flow.flows, deadline, flow.id)
  revive(flow)
  for _, n in ipairs(redis.call('lrange', flow.held, 0, -1)) do redis.call('rpush', flow.todo, n) end
  redis.call('del', flow.held)
end

-- Let the failed member `n` run again; returns what became of the flow, '' if the member has not failed.
local function resume_member(flow, n)
  local letter, spent, edges = member(flow, n)
  if letter ~= 'f' or flow.state == '' then return '' end
  set_letter(flow, n, 'r', spent, edges)
  redis.call('hincrby', flow.facts, 'active', 1)
  redis.call('hincrby', flow.facts, 'failed', -1)
  resume(flow)
  local became = go_on(flow)
  return tonumber(fact(flow, 'next')) < tonumber(fact(flow, 'roots')) and 'more' or became
end
