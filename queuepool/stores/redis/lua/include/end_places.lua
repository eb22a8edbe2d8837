-- Around a script that ends leases: give back the places that they hold, and hand those on.
-- ARGV     after the script's own: those of limits.lua; a holder for each lease; how many these are
-- Returns  what the script does: a number for one lease, 0 if it was lost; an array of 1 for each that was held, or for
--          one lease an array that begins with 1
-- The script does not see our arguments. Whatever is wrong with a limit, the leases end.
-- include: clock limits
local holders = {}
for i = tonumber(table.remove(ARGV)), 1, -1 do holders[i] = table.remove(ARGV) end
local words = {}
for i = 3, 1, -1 do words[i] = table.remove(ARGV) end

local function settle()
-- the script
end

local answer = settle()
if type(answer) == 'table' and answer.err then return answer end
local limits = open_limits(unpack(words))
for i, holder in ipairs(holders) do
  local is_over = type(answer) == 'table' and answer[i] == 1 or type(answer) == 'number' and answer ~= 0
  if is_over then pcall(leave, limits, holder) end
end
return answer
