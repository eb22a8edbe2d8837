-- Around reserve.lua: settle the members of flows that are among the done jobs, before it removes these and takes others,
-- so that a worker gets what follows a job in the round trip that ends it. Only members that are done, with no result
-- and nothing to add; all others are settled by settle_member.lua.
-- KEYS     after the script's own: for each flow its first six (flow.lua); of all flows the last two
-- ARGV     after the script's own: the id of each flow; how the keys of queues begin, how the stewards' channels do; how
--          many flows these are; for each done job the number of its flow, a colon, its own number there and a comma;
--          0: = none
-- Returns  what the script does, and at its end: for each flow that has ended, or of which more is left to do, its id, its
--          name, and what end_if_over has returned
-- The script does not see our keys and arguments.
-- include: clock lease full put wake flow
local places, count = table.remove(ARGV), tonumber(table.remove(ARGV))
local channels, queues = table.remove(ARGV), table.remove(ARGV)
local stopped, flows_key = table.remove(KEYS), table.remove(KEYS)
local flows, ended = {}, {}
for i = count, 1, -1 do
  local held, todo, results = table.remove(KEYS), table.remove(KEYS), table.remove(KEYS)
  local waiting, letters, facts = table.remove(KEYS), table.remove(KEYS), table.remove(KEYS)
  flows[i] = {
    facts = facts, letters = letters, waiting = waiting, results = results, todo = todo, held = held,
    flows = flows_key, stopped = stopped, id = table.remove(ARGV), queues = queues, channels = channels, over = {},
  }
end

local function settle()
-- the script
end

-- The letters of those that run become d. Members that end alike are one item of the work, as they are counted in one
-- command. A copy of a job may be here, too: it counts once.
local function end_all(flow)
  local found, letters, alike, work, over = redis.call('hmget', flow.letters, unpack(flow.over)), {}, {}, {}, 0
  local seen = {}
  for i, n in ipairs(flow.over) do
    local letter = found[i] or ''
    if string.sub(letter, 1, 1) == 'r' and not seen[n] then
      seen[n], over = true, over + 1
      letters[#letters + 1] = n
      letters[#letters + 1] = 'd1' .. string.sub(letter, 3)
      local item = alike[letter]
      if not item then
        item = {'d', string.sub(letter, 2, 2), string.sub(letter, 3), 0}
        alike[letter], work[#work + 1] = item, item
      end
      item[4] = item[4] + 1
    end
  end
  if over > 0 then redis.call('hset', flow.letters, unpack(letters)) end
  return over, work
end

-- As end_if_over. The number of active members is written once.
local function settle_done(flow)
  local over, work = end_all(flow)
  if over == 0 then return '' end
  flow.change = 0
  follow_edges(flow, work)
  local change = flow.change - (flow.is_over and 0 or over)
  if change ~= 0 then redis.call('hincrby', flow.facts, 'active', change) end
  if flow.change > 0 and not flow.has_left then return '' end
  return end_if_over(flow)
end

local function settle_members(flow, now)
  local facts = redis.call('hmget', flow.facts, 'state', 'ended', 'name')
  if not facts[1] then return end
  flow.state, flow.is_over, flow.now = facts[1], facts[2] and true, now
  local became = settle_done(flow)
  if became ~= '' then
    for _, word in ipairs({flow.id, facts[3] or '', became}) do ended[#ended + 1] = word end
  end
end

-- The members that the done jobs are, if their leases are held; as reserve.lua reads its arguments.
local function find_members()
  local next_place, at = string.gmatch(places, '(%d+):([^,]*),'), 6
  while at <= #ARGV do
    local reserved, owner = KEYS[(tonumber(ARGV[at]) - 1) * 5 + 4], tonumber(ARGV[at + 1])
    local last = at + 2 + tonumber(ARGV[at + 2])
    for i = at + 3, last do
      local flow, n = next_place()
      if flow ~= '0' and is_held(redis.call('zscore', reserved, ARGV[i]), owner) then
        table.insert(flows[tonumber(flow)].over, n)
      end
    end
    at = last + 1
  end
end

write_nothing(KEYS[4])
if tonumber(redis.call('zscore', KEYS[1], ARGV[3]) or 0) < 0 then return settle() end -- the tag is retired: it refuses
find_members()
local now = clock(ARGV[1])
for _, flow in ipairs(flows) do
  if #flow.over > 0 then settle_members(flow, now) end
end
local answer = settle()
if not answer.err then answer[#answer + 1] = ended end
return answer
