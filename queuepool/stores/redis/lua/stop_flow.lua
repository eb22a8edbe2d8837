-- stop_flow.lua: let nothing more of a flow start but what follows failures and ends.
-- Source:  none.
-- KEYS     1-8 those of the flow (flow.lua)
-- ARGV     1-4 those of the flow (flow.lua)   5 its new state: cancelled or expired   6 seconds until a steward looks
--          again   7 '1' = end it even if members of it seem to run
-- Returns  as end_if_over; 'gone' when there is no such flow; 'over' when it has ended
-- include: clock full put wake flow
write_nothing(KEYS[7])
local flow = open_flow(1, 1)
if flow.state == '' then return 'gone' end
if fact(flow, 'ended') ~= '' then return 'over' end
if flow.state == 'building' then redis.call('hset', flow.facts, 'active', 0, 'failed', 0) end
if ARGV[7] == '1' then
  redis.call('hset', flow.facts, 'active', 0)
  redis.call('del', flow.todo)
end
stop(flow, ARGV[5])
redis.call('zadd', flow.flows, flow.now + tonumber(ARGV[6]), flow.id)
return end_if_over(flow)
