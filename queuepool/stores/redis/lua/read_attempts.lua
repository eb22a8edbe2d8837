-- read_attempts.lua: the records of a queue's attempts, some sheets at a time, the latest first (include/keep.lua).
-- Source:  none.
-- KEYS     1 a queue's sheets of records, list
-- ARGV     1 where the last step has ended: the sheets before it are left; -1 = all   2 a text that they have
--          3 most sheets that are read   4 most bytes, plus a page
-- Returns  where this step has ended, 0 = at the first; then the sheets. Meanwhile sheets are added after those that
--          were read, and others removed before them: so some may be read twice, none is missed.
local PAGE = 10
local last, most, room = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
if last < 0 then last = redis.call('llen', KEYS[1]) end
local found = {}
while last > 0 and most > 0 and room > 0 do
  local first = math.max(last - PAGE, 0)
  local page = redis.call('lrange', KEYS[1], first, last - 1)
  for i = #page, 1, -1 do
    room = room - #page[i]
    if string.find(page[i], ARGV[2], 1, true) then found[#found + 1] = page[i] end
  end
  last, most = first, most - PAGE
end
return {last, unpack(found)}
