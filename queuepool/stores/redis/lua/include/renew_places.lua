-- Around renew.lua: let places last as long as the leases of those that hold them.
-- ARGV     after the script's own: those of limits.lua; a holder for each lease; how many these are
-- Returns  what the script does
local holders = {}
for i = tonumber(table.remove(ARGV)), 1, -1 do holders[i] = table.remove(ARGV) end
local _, _, own = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)

local function settle()
-- the script
end

local answer = settle()
if answer.err then return answer end
local AT_ONCE, places_of = 1000, {} -- Lua unpacks no more than some thousands
for i, holder in ipairs(holders) do
  local at = (i - 1) % AT_ONCE + 1
  if at == 1 then
    places_of = redis.call('hmget', own .. 'limits:places', unpack(holders, i, math.min(i + AT_ONCE - 1, #holders)))
  end
  if places_of[at] and answer[i] == 1 then
    local score = redis.call('zscore', KEYS[tonumber(ARGV[i * 3]) + 1], ARGV[i * 3 + 2])
    for key in string.gmatch(places_of[at], '%S+') do
      redis.call('zadd', own .. 'limit:held:' .. key, 'XX', score, holder)
    end
  end
end
return answer
