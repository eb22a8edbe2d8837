-- Flows: a member starts in the script that ends the last of those that it follows (stores/flows.py).
-- Keys of a flow: hash of facts; letters, by number: letter, whether its edges of the rules f and a are spent (0, 1),
-- and its edges, each a number, a rule and a comma; payloads of those that wait, as QUEUE LF DELAY LF PAYLOAD; results;
-- a list of what is left over, edges or numbers of members to start, with their rule if it is known; a list of members
-- that were ready while the flow was stopped.
-- Facts: `state`, `active` members, `failed` ones; of a member N that waits: `l<N>` how many of those that it follows
-- are not over, `b<N>` how many of them have failed or were cancelled; `n<N>` the name of one that was added; `skips`:
-- whether a job was skipped; `cut`: whether a letter may be c, or `active` is not how many letters are r.
local MOST_EDGES = 500
local MOST_RESULTS = 16 * 1024 * 1024
local FAILED_LASTS = 30 * 86400
-- edges that the script may still follow, of all flows together
local edges_left = MOST_EDGES

-- KEYS[key]: facts, letters, waiting, results, left over, held; of all flows: those by the second at which a steward
-- must look, and the stopped ones, too. ARGV[arg]: id, how the keys of queues begin, how the stewards' channels do,
-- test clock.
local function open_flow(key, arg)
  local state, ended = unpack(redis.call('hmget', KEYS[key], 'state', 'ended'))
  return {
    facts = KEYS[key], letters = KEYS[key + 1], waiting = KEYS[key + 2], results = KEYS[key + 3],
    todo = KEYS[key + 4], held = KEYS[key + 5], flows = KEYS[key + 6], stopped = KEYS[key + 7],
    id = ARGV[arg], queues = ARGV[arg + 1], channels = ARGV[arg + 2], now = clock(ARGV[arg + 3]),
    state = state or '', is_over = ended and true,
  }
end

local function fact(flow, name) return redis.call('hmget', flow.facts, name)[1] or '' end

-- Letter, whether its edges are spent, and the edges; nil if there is no such member.
local function member(flow, n)
  return string.match(redis.call('hmget', flow.letters, n)[1] or '', '^(%a)(%d)(.*)$')
end

local function set_letter(flow, n, letter, spent, edges)
  redis.call('hset', flow.letters, n, letter .. spent .. edges)
  if letter == 'c' then redis.call('hset', flow.facts, 'cut', 1) end
end

local function push_to(flow, queue, delay, payload)
  local ready = flow.queues .. queue
  if delay > 0 then
    put(ready .. ':delayed', flow.now + delay, payload)
    pcall(wake_if_first, ready .. ':delayed', flow.channels .. queue, flow.now + delay)
  else
    redis.call('rpush', ready, payload)
    pcall(redis.call, 'rpush', ready .. ':notify', 1)
  end
end

-- Those that have begun and not ended, by when they did.
local function begun(flow) return flow.flows .. ':begun' end

local function stop(flow, state)
  flow.state = state
  redis.call('hset', flow.facts, 'state', state)
  redis.call('zadd', flow.stopped, flow.now, flow.id)
end

-- A member that would start but cannot: it is cancelled, and starts when the flow is resumed.
local function hold(flow, work, n)
  local _, spent, edges = member(flow, n)
  redis.call('rpush', flow.held, n)
  set_letter(flow, n, 'c', 1, edges)
  work[#work + 1] = {'c', spent, edges}
end

local function leave_over(flow, item, several)
  flow.has_left = true
  for _ = 1, several or 1 do redis.call('rpush', flow.todo, item) end
end

-- Push to a queue of which the server may refuse the keys: all else of the flow goes on, and this is tried again.
local function may_push(flow, ...)
  local fine, problem = pcall(push_to, flow, ...)
  if not fine then flow.problem = problem end
  return fine
end

-- One whose payload is gone counts as skipped. `spent` and `edges`: as `member` has them, if that is known.
local function start(flow, work, n, spent, edges, rule)
  if not edges then spent, edges = select(2, member(flow, n)) end
  local waiting = redis.call('hmget', flow.waiting, n)[1] or ''
  local queue, delay, payload = string.match(waiting, '^([^\n]*)\n([^\n]*)\n(.*)$')
  if not queue then
    redis.call('hincrby', flow.facts, 'skips', 1)
    return hold(flow, work, n)
  end
  if not may_push(flow, queue, tonumber(delay), payload) then return leave_over(flow, n .. (rule or '')) end
  set_letter(flow, n, 'r', spent, edges)
  redis.call('hdel', flow.waiting, n)
  if flow.change then flow.change = flow.change + 1 else redis.call('hincrby', flow.facts, 'active', 1) end
end

-- All that it follows is over.
local function is_ready(flow, work, n, rule)
  local letter, spent, edges = member(flow, n)
  if letter ~= 'w' then return end
  if rule == 'f' and fact(flow, 'b' .. n) == '' then
    set_letter(flow, n, 'k', 1, edges)
    work[#work + 1] = {'k', spent, edges}
  elseif rule == 's' and flow.state ~= 'running' then
    hold(flow, work, n)
  else
    start(flow, work, n, spent, edges, rule)
  end
end

-- What follows for member `n`, of this rule, from the end of one that it follows, or of several alike.
local function follow_edge(flow, work, how, spent, n, rule, several)
  if rule == 's' and how ~= 'd' then
    local letter, its_spent, edges = member(flow, n)
    if letter ~= 'w' then return end
    local its = how == 'k' and 'k' or 'c'
    set_letter(flow, n, its, 1, edges)
    work[#work + 1] = {its, its_spent, edges}
    return
  end
  if rule ~= 's' then
    if spent == '1' then return end
    if how == 'f' or how == 'c' then redis.call('hincrby', flow.facts, 'b' .. n, several) end
  end
  if redis.call('hincrby', flow.facts, 'l' .. n, -several) == 0 then is_ready(flow, work, n, rule) end
end

-- `work`: for each member that is over how it is, whether its edges were spent, its edges, and how many are over in just
-- this way (nil = one). What is left above a bound goes to the list, as other clients of the server wait meanwhile.
local function follow_edges(flow, work)
  while #work > 0 do
    local how, spent, edges, several = unpack(table.remove(work))
    local at = 1
    while edges_left > 0 do
      local _, last, n, rule = string.find(edges, '^([%d.]+)(%a),', at)
      if not last then break end
      follow_edge(flow, work, how, spent, n, rule, several or 1)
      at, edges_left = last + 1, edges_left - 1
    end
    if at <= #edges then leave_over(flow, how .. spent .. string.sub(edges, at), several) end
    if edges_left == 0 then
      for _, item in ipairs(work) do
        if item[3] ~= '' then leave_over(flow, item[1] .. item[2] .. item[3], item[4]) end
      end
      work = {}
    end
  end
  if flow.has_left then redis.call('zadd', flow.flows, flow.now + 2, flow.id) end
end

local function over_as(flow)
  local is_whole = fact(flow, 'failed') == '0' and fact(flow, 'skips') == ''
  if flow.state == 'running' then return is_whole and 'done' or 'failed' end
  return flow.state == 'failing' and 'failed' or flow.state
end

local function keep_for(flow, seconds)
  local whole = math.max(math.ceil(seconds), 1)
  for _, key in ipairs({flow.facts, flow.letters, flow.waiting, flow.results, flow.held}) do
    redis.call('expire', key, whole)
  end
  redis.call('zadd', flow.flows, flow.now + whole, flow.id)
end

-- End the flow if nothing of it is left to run. Returns its state then, 'more' if anything is left over, else ''.
local function end_if_over(flow)
  if redis.call('exists', flow.todo) == 1 then return 'more' end
  if flow.is_over or tonumber(fact(flow, 'active')) > 0 then return '' end
  local state, keep = over_as(flow), tonumber(fact(flow, 'keep'))
  local queue, payload = string.match(fact(flow, 'alarm'), '^([^\n]*)\n(.*)$')
  if state == 'failed' and queue then
    if not may_push(flow, queue, 0, payload) then
      redis.call('zadd', flow.flows, flow.now + 2, flow.id)
      return 'more'
    end
    redis.call('hdel', flow.facts, 'alarm')
  end
  redis.call('hset', flow.facts, 'state', state, 'ended', string.format('%.6f', flow.now))
  redis.call('zrem', flow.stopped, flow.id)
  redis.call('zrem', begun(flow), flow.id)
  keep_for(flow, state == 'done' and keep or math.max(keep, FAILED_LASTS))
  return state
end

-- Start members by the numbers with which the list begins, if it does; returns how many there were.
local function start_left(flow, work, items)
  for i, item in ipairs(items) do
    local n, rule = string.match(item, '^([%d.]+)(%a?)$')
    if not n then return i - 1 end
    if member(flow, n) == 'w' then
      local may_start = flow.state == 'running' or rule == 'f' or rule == 'a'
      if may_start then start(flow, work, n, nil, nil, rule) else hold(flow, work, n) end
    end
  end
  return #items
end

local function go_on(flow)
  local work, items = {}, redis.call('lrange', flow.todo, 0, MOST_EDGES - 1)
  local taken = start_left(flow, work, items)
  if items[1] and taken == 0 then
    local how, spent, edges = string.match(items[1], '^(.)(.)(.*)$')
    work, taken = {{how, spent, edges}}, 1
  end
  redis.call('ltrim', flow.todo, taken, -1)
  flow.has_left = redis.call('exists', flow.todo) == 1
  follow_edges(flow, work)
  return end_if_over(flow)
end
