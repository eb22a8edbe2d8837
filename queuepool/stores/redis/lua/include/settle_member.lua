-- Settle a member in the script that ends its job. ARGV[arg]: its number, how it has ended, its result ('' = none), its
-- queue, its payload as it was pushed; then, for each member that it adds: number, name, queue, delay, payload.
-- Returns what became of the flow, as end_if_over does; '' also for a job that was counted before, or whose flow is
-- gone.
local function keep_result(flow, n, result)
  if result == '' then return end
  if redis.call('hincrby', flow.facts, 'bytes', #result) > MOST_RESULTS then
    redis.call('hincrby', flow.facts, 'bytes', -#result)
  else
    redis.call('hset', flow.results, n, result)
  end
end

-- Those that follow the member wait for what it adds as well.
local function add_children(flow, work, edges, first, last)
  local count = (last - first + 1) / 5
  if count == 0 then return end
  for n in string.gmatch(edges, '([%d.]+)%a,') do redis.call('hincrby', flow.facts, 'l' .. n, count) end
  redis.call('hincrby', flow.facts, 'total', count)
  for i = first, last, 5 do
    redis.call('hset', flow.waiting, ARGV[i], ARGV[i + 2] .. '\n' .. ARGV[i + 3] .. '\n' .. ARGV[i + 4])
    redis.call('hset', flow.facts, 'n' .. ARGV[i], ARGV[i + 1])
    set_letter(flow, ARGV[i], 'w', 0, edges)
    if flow.state == 'running' then start(flow, work, ARGV[i]) else hold(flow, work, ARGV[i]) end
  end
end

local function settle_member(flow, arg, last)
  local n, how = ARGV[arg], ARGV[arg + 1]
  local letter, spent, edges = member(flow, n)
  if letter ~= 'r' or flow.state == '' then return '' end
  if how == 'o' and flow.state == 'running' then -- it was resumed meanwhile
    push_to(flow, ARGV[arg + 3], 0, ARGV[arg + 4])
    return ''
  end
  if how == 'o' then how = 'c' elseif how == 'c' then redis.call('hincrby', flow.facts, 'skips', 1) end
  set_letter(flow, n, how, 1, edges)
  keep_result(flow, n, ARGV[arg + 2])
  local work = {{how, spent, edges}}
  add_children(flow, work, edges, arg + 5, last)
  if how == 'f' then
    redis.call('hincrby', flow.facts, 'failed', 1)
    if flow.state == 'running' and fact(flow, 'stops') == '1' then stop(flow, 'failing') end
  elseif how == 'c' then
    redis.call('hset', flow.waiting, n, ARGV[arg + 3] .. '\n0\n' .. ARGV[arg + 4])
    redis.call('rpush', flow.held, n)
  end
  if not flow.is_over then redis.call('hincrby', flow.facts, 'active', -1) end -- else it was given up as lost
  follow_edges(flow, work)
  return end_if_over(flow)
end
