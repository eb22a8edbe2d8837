-- retry_member.lua: as retry.lua, for one member of a flow, which goes on from there.
-- Source:  none.
-- KEYS     1 failed jobs, hash   2-9 those of its flow (flow.lua)   10 failed jobs by time, zset   11 ready list
--          12 notify list   13 its state   14 its lock
-- ARGV     1 not used   2 the member's number   3 not used   4-7 those of its flow (flow.lua)
--          8 id ('' = the record is in another store)   9 payload   10 the record's time   11 the state ('' = not tracked)   12 seconds that it is kept
--          13 the lock's owner ('' = it has no lock)   14 seconds that it lasts
-- Returns  1, 2 when something is left over (start_flow.lua), 0 when the record is gone, or -1 when another job holds the lock
-- include: clock splice tokens note_state take_lock put wake flow
local is_here = ARGV[8] ~= ''
if is_here and tonumber(redis.call('zscore', KEYS[10], ARGV[8]) or '') ~= tonumber(ARGV[10]) then return 0 end
redis.call('llen', KEYS[11])
if ARGV[13] ~= '' and not take_lock(KEYS[14], ARGV[13], ARGV[14]) then return -1 end

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
  for _, key in ipairs({flow.facts, flow.letters, flow.waiting, flow.results, flow.held}) do redis.call('expire', key, FOR_EVER) end
  redis.call('zadd', flow.flows, deadline, flow.id)
  revive(flow)
  for _, n in ipairs(redis.call('lrange', flow.held, 0, -1)) do redis.call('rpush', flow.todo, n) end
  redis.call('del', flow.held)
end

local flow = open_flow(2, 4)
local letter, spent, edges = member(flow, ARGV[2])
local became = ''
if letter == 'f' and flow.state ~= '' then
  set_letter(flow, ARGV[2], 'r', spent, edges)
  redis.call('hincrby', flow.facts, 'active', 1)
  redis.call('hincrby', flow.facts, 'failed', -1)
  resume(flow)
  became = go_on(flow)
  if tonumber(fact(flow, 'next')) < tonumber(fact(flow, 'roots')) then became = 'more' end
end
redis.call('rpush', KEYS[11], (splice(ARGV[9], none)) or ARGV[9])
if is_here then
  redis.call('hdel', KEYS[1], ARGV[8])
  redis.call('zrem', KEYS[10], ARGV[8])
end
note_state(KEYS[13], ARGV[11], ARGV[12])
pcall(count_tokens, KEYS[11], KEYS[12])
return became == 'more' and 2 or 1
