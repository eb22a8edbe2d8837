-- resume_member.lua: let a flow go on whose failed member runs again, or has.
-- Source:  none.
-- KEYS     1-8 those of the flow (flow.lua)
-- ARGV     1-4 those of the flow (flow.lua)   5 the member's number
-- Returns  'more' when something is left over (start_flow.lua), else '', also if nothing has changed
-- include: clock full put wake flow resume
write_nothing(KEYS[7])
local flow = open_flow(1, 1)
if flow.state == 'cancelled' or flow.state == 'expired' then return '' end
return resume_member(flow, ARGV[5]) == 'more' and 'more' or ''
