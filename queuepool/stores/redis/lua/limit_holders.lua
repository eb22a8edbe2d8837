-- limit_holders.lua: who holds places at these keys of limits.
-- Source:  none.
-- KEYS     1 places of holders, hash
-- ARGV     1-3 those of limits.lua   4 most of each key   then the keys
-- Returns  of each place: its key, its holder, when it ends; a start that is counted has no holder: ''
-- Reads only.
-- include: clock limits
local limits, found = open_limits(ARGV[1], ARGV[2], ARGV[3]), {}
for i = 5, #ARGV do
  local rule, first = rule_of(limits, ARGV[i]), string.format('(%.6f', last_ended(limits, ARGV[i]))
  local held = key_of(limits, 'held', ARGV[i])
  local rows = redis.call('zrangebyscore', held, first, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
  for place = 1, #rows, 2 do
    local holder = string.find(rows[place], ' ', 1, true) and '' or rows[place]
    local ends = string.format('%.6f', rows[place + 1] + (rule and rule.per or 0))
    for _, word in ipairs({ARGV[i], holder, ends}) do found[#found + 1] = word end
  end
end
return found
