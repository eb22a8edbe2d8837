-- Around a script that ends leases: keep the records of the attempts that end with them (stores/attempts.py).
-- KEYS     after the script's own: lists of sheets
-- ARGV     after the script's own: for each list the records, each a line, below one of what they have in common; and
--          numbers, with blanks: the seconds that they are kept, how many lists there are; for each run of leases the
--          number of its list, which argument is the first one's payload, how many arguments later the next one's is,
--          how many there are
-- Returns  what the script does: a number for one lease, 0 if it was lost; an array with 1 for each that was held; or,
--          as reserve.lua, an array that begins with one of those that were lost
-- The script does not see our keys and arguments.
-- A sheet: the server's second, for how many it is kept, the number of records, which of them are of lost leases; the
-- records; their payloads, without long ones, with NULs between them, which no job has in its JSON. To add one for all
-- that end together costs the server a tenth of one for each.
local MOST_PAYLOAD, SPARE = 4096, 3600
local numbers, records, lists, payloads = {}, {}, {}, {}
for number in string.gmatch(table.remove(ARGV), '-?%d+') do numbers[#numbers + 1] = tonumber(number) end
local kept, count = numbers[1], numbers[2]
for i = count, 1, -1 do
  records[i], lists[i], payloads[i] = table.remove(ARGV), table.remove(KEYS), {}
end
for run = 3, #numbers, 4 do
  local of_list, at = payloads[numbers[run]], numbers[run + 1]
  for _ = 1, numbers[run + 3] do
    of_list[#of_list + 1] = #ARGV[at] <= MOST_PAYLOAD and ARGV[at] or ''
    at = at + numbers[run + 2]
  end
end

local second = redis.call('time')[1]
local function sheet(i, lost)
  local head = table.concat({second, kept, #payloads[i], table.concat(lost, ',')}, ' ')
  return head .. '\n' .. records[i] .. '\n' .. table.concat(payloads[i], '\0')
end

-- Before the script: once that has written, a full server refuses nothing, and records would take what jobs free. And
-- whatever is wrong with a list, the leases end.
local added = {}
for i = 1, count do
  local length = redis.pcall('rpush', lists[i], sheet(i, {}))
  added[i] = type(length) == 'number'
  -- A list that nobody trims ends by itself.
  if length == 1 then redis.pcall('expire', lists[i], math.max(kept, 0) + SPARE) end
end
local function take_back(i)
  if added[i] then redis.pcall('ltrim', lists[i], 0, -2) end
end

local function settle()
-- the script
end

local fine, answer = pcall(settle)
if not fine or (type(answer) == 'table' and answer.err) then
  for i = 1, count do take_back(i) end
  if fine then return answer end
  error(answer, 0)
end

local lost = {}
if type(answer) ~= 'table' then
  lost[1] = answer == 0 or nil
elseif type(answer[1]) == 'table' then
  for _, number in ipairs(answer[1]) do lost[number] = true end
else
  for i, held in ipairs(answer) do lost[i] = held ~= 1 or nil end
end
if next(lost) == nil then return answer end

local of_list, places, number = {}, {}, 0
for i = 1, count do of_list[i], places[i] = {}, 0 end
for run = 3, #numbers, 4 do
  local i = numbers[run]
  for _ = 1, numbers[run + 3] do
    number, places[i] = number + 1, places[i] + 1
    if lost[number] then table.insert(of_list[i], places[i]) end
  end
end
for i = 1, count do
  if added[i] and #of_list[i] > 0 then
    take_back(i)
    redis.pcall('rpush', lists[i], sheet(i, of_list[i]))
  end
end
return answer
