-- start_flow.lua: begin a flow, if all of it is there, or go on with what is left to do for it.
-- Source:  none.
-- KEYS     1-8 those of the flow (flow.lua)
-- ARGV     1-4 those of the flow (flow.lua)   5 most members that are pushed
-- Returns  as end_if_over; 'more' also if members are left that start with the flow; 'lacks' if not all of it is there
--          Raises what the server refuses of a queue, once all else is done; what was to go there is left over.
-- include: clock full put wake flow
write_nothing(KEYS[7])
local flow = open_flow(1, 1)
if flow.state == '' then return 'lacks' end
if flow.is_over then return '' end
local roots = tonumber(fact(flow, 'roots'))
if flow.state == 'building' then
  if fact(flow, 'there') ~= fact(flow, 'total') then return 'lacks' end
  flow.state = 'running'
  redis.call('hset', flow.facts, 'state', 'running', 'active', roots, 'failed', 0, 'next', 0)
  redis.call('zadd', begun(flow), flow.now, flow.id)
end
local first = tonumber(fact(flow, 'next'))
local after = math.min(first + tonumber(ARGV[5]), roots)
local work = {}
for n = first, after - 1 do
  -- They count as active from the beginning: else the flow could end before the last of them is pushed.
  if flow.state == 'running' then start(flow, work, n) else hold(flow, work, n) end
  redis.call('hincrby', flow.facts, 'active', -1)
end
redis.call('hset', flow.facts, 'next', after)
local deadline = tonumber(fact(flow, 'deadline'))
if after < roots then
  redis.call('zadd', flow.flows, flow.now + 2, flow.id)
elseif flow.now < deadline then
  redis.call('zadd', flow.flows, deadline, flow.id)
end
follow_edges(flow, work)
if after < roots then return 'more' end
local became = go_on(flow)
if flow.problem then error(flow.problem, 0) end
return became
