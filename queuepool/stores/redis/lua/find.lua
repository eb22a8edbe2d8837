-- find.lua: the waiting jobs whose bytes contain a text, some at a time, from the tail to the head.
-- Source:  none.
-- KEYS     1 ready list   2 delayed zset
-- ARGV     1 the number of the key   2 where the last step has ended: the jobs before it are left; -1 = all
--          3 the text   4 most jobs that are read   5 most bytes, plus a page
-- Returns  where this step has ended, 0 = at the head; then the jobs
local PAGE, OVERLAP = 50, 20
local key, is_list = KEYS[tonumber(ARGV[1])], ARGV[1] == '1'
local last, most, room = tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[5])
if last < 0 then last = redis.call(is_list and 'llen' or 'zcard', key) end
local found = {}
while last > 0 and most > 0 and room > 0 do
  local first = math.max(last - PAGE, 0)
  for _, job in ipairs(redis.call(is_list and 'lrange' or 'zrange', key, first, last - 1)) do
    room = room - #job
    if string.find(job, ARGV[3], 1, true) then found[#found + 1] = job end
  end
  last, most = first, most - PAGE
end
-- Jobs that come to the head before the next step move the others away from it: some are read twice.
if last > 0 then last = last + OVERLAP end
return {last, unpack(found)}
