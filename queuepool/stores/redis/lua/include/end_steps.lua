-- Around a script that ends one lease: forget what is kept of the job's steps, or keep how far a cursor is.
-- KEYS     after the script's own: the kept steps of the job, hash
-- ARGV     after the script's own: the name and the place of each cursor; how many these are; seconds that they are
--          kept, 0 = forget them
-- Returns  what the script does: a number, 0 if the lease was lost; or an array with that
-- The script does not see our key and arguments. Whatever is wrong with the steps, the lease ends.
local lasts, count, places = table.remove(ARGV), table.remove(ARGV), {}
for at = tonumber(count), 1, -1 do places[at] = table.remove(ARGV) end
local steps = table.remove(KEYS)

local function settle()
-- the script
end

local answer = settle()
if answer == 0 or (type(answer) == 'table' and answer[1] ~= 1) then return answer end
if lasts == '0' then
  redis.pcall('del', steps)
else
  if #places > 0 then redis.pcall('hset', steps, unpack(places)) end
  redis.pcall('expire', steps, lasts)
end
return answer
