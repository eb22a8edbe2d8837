-- add_members.lua: write a piece of a flow that has not begun; a piece that comes twice changes nothing.
-- Source:  none.
-- KEYS     1-8 those of the flow (flow.lua)
-- ARGV     1-4 those of the flow (flow.lua)   5 seconds that it is kept unless it begins   6 how many facts   then those
--          then for each member: number, edges, QUEUE LF DELAY LF PAYLOAD, how many members it follows
-- Returns  1, or 0 when the flow has begun
-- include: clock put wake flow
local flow = open_flow(1, 1)
if flow.state ~= '' and flow.state ~= 'building' then return 0 end
local first = 7 + tonumber(ARGV[6])
redis.call('hset', flow.facts, 'state', 'building', unpack(ARGV, 7, first - 1))
for i = first, #ARGV, 4 do
  local fresh = redis.call('hset', flow.letters, ARGV[i], 'w0' .. ARGV[i + 1])
  redis.call('hincrby', flow.facts, 'there', fresh)
  redis.call('hset', flow.waiting, ARGV[i], ARGV[i + 2])
  if ARGV[i + 3] ~= '0' then redis.call('hset', flow.facts, 'l' .. ARGV[i], ARGV[i + 3]) end
end
-- A flow that never begins ends by itself; this key alone tells how late that is.
redis.call('zadd', flow.flows, flow.now + tonumber(ARGV[5]), flow.id)
return 1
