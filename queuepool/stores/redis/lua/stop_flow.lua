-- stop_flow.lua: let nothing more of a flow start but what follows failures and ends.
-- Source:  none.
-- KEYS     1-8 those of the flow (flow.lua)
-- ARGV     1-4 those of the flow (flow.lua)   5 its new state: cancelled or expired   6 seconds until a steward looks
--          again   7 '1' = end it even if members of it seem to run
-- Returns  as start_flow.lua; 'gone' when there is no such flow; 'over' when it has ended
-- include: clock full put wake flow
write_nothing(KEYS[7])
local flow = open_flow(1, 1)
if flow.state == '' then return 'gone' end
if flow.is_over then return 'over' end
local is_begun, deadline = flow.state ~= 'building', tonumber(fact(flow, 'deadline'))
if not is_begun then redis.call('hset', flow.facts, 'active', 0, 'failed', 0) end
if ARGV[7] == '1' then
  redis.call('hset', flow.facts, 'active', 0, 'cut', 1)
  redis.call('del', flow.todo)
end
-- From here on it has as long as one whose deadline is past.
redis.call('hset', flow.facts, 'deadline', math.min(deadline, flow.now))
stop(flow, flow.state == 'cancelled' and flow.state or ARGV[5])
local became = end_if_over(flow)
if became ~= '' then return became end
if is_begun and tonumber(fact(flow, 'next')) < tonumber(fact(flow, 'roots')) then return 'more' end
redis.call('zadd', flow.flows, flow.now + tonumber(ARGV[6]), flow.id)
return ''
