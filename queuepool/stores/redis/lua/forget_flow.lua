-- forget_flow.lua: drop a flow that is not needed any more: it has ended and was kept, or never began.
-- Source:  none.
-- KEYS     1-8 those of the flow (flow.lua)
-- ARGV     1-4 those of the flow (flow.lua)
-- Returns  1, or 0 when it is needed: it has begun, or was resumed
-- include: clock full put wake flow
write_nothing(KEYS[7])
local flow = open_flow(1, 1)
local at = tonumber(redis.call('zscore', flow.flows, flow.id) or 0)
if at > flow.now or not (flow.is_over or flow.state == '' or flow.state == 'building') then return 0 end
redis.call('del', unpack(KEYS, 1, 6))
redis.call('zrem', flow.flows, flow.id)
redis.call('zrem', flow.stopped, flow.id)
return 1
