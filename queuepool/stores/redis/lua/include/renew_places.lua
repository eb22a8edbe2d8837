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
local places, places_of = {}, redis.call('hmget', own .. 'limits:places', unpack(holders))
for i, holder in ipairs(holders) do
  if places_of[i] and answer[i] == 1 then
    local score = redis.call('zscore', KEYS[tonumber(ARGV[i * 3]) + 1], ARGV[i * 3 + 2])
    for key in string.gmatch(places_of[i], '%S+') do
      redis.call('zadd', own .. 'limit:held:' .. key, 'XX', score, holder)
    end
  end
end
return answer
