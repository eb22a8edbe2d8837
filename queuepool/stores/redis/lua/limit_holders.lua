-- limit_holders.lua: who holds places at these keys of limits.
-- Source:  none.
-- KEYS     1 places of holders, hash
-- ARGV     1-3 those of limits.lua   4 most of each key   then the keys
-- Returns  of each place: its key, its holder, when it ends; a start that is counted has no holder: ''
-- Reads only.
-- include: clock
local found, now = {}, clock(ARGV[3])
local function key_of(kind, key) return ARGV[1] .. 'limit:' .. kind .. ':' .. key end
for i = 5, #ARGV do
  local range = {string.format('(%.6f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4]}
  local rows = redis.call('zrangebyscore', key_of('held', ARGV[i]), unpack(range))
  for place = 1, #rows, 2 do
    local holder = string.find(rows[place], ' ', 1, true) and '' or rows[place]
    for _, word in ipairs({ARGV[i], holder, rows[place + 1]}) do found[#found + 1] = word end
  end
end
return found
