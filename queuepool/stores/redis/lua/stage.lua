-- stage.lua: move delayed jobs that are due, and jobs whose leases have ended, to their ready lists.
-- Source:  Illuminate/Queue/LuaScripts.php, migrateExpiredJobs (13.x)
-- KEYS     for each queue: ready list, delayed zset, reserved zset, notify list
-- ARGV     1 test clock, '' = the server's   2 most jobs
-- Returns  how many were moved, seconds to the next due job or '', the clock in Unix seconds
-- Differs  bounded (500,000 jobs at once would stall every client for seconds); wakes exactly as many
--          workers as jobs; the server's clock.
-- include: clock tokens stage refusal full
local now, most, next_due = clock(ARGV[1]), tonumber(ARGV[2]), nil
local moved = 0

local function serve(ready, delayed, reserved, notify)
  if redis.call('exists', ready, delayed, reserved, notify) == 0 then return end
  moved = moved + move_due(delayed, ready, now, most - moved)
  if moved < most then moved = moved + move_due(reserved, ready, now, most - moved) end
  count_tokens(ready, notify)
  next_due = first_due(reserved, first_due(delayed, next_due))
end

write_nothing(KEYS[3])
for i = 1, #KEYS, 4 do
  if moved >= most then break end
  -- A key of the wrong type stops only its own queue; the workers' reserve reports it.
  local fine, problem = pcall(serve, unpack(KEYS, i, i + 3))
  if not fine then of_its_queue(problem) end
end
if moved >= most then next_due = now end
return {moved, next_due and string.format('%.6f', math.max(next_due - now, 0)) or '', string.format('%.6f', now)}
