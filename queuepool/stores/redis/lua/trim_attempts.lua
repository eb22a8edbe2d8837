-- trim_attempts.lua: remove the records of attempts that were kept for long enough, and the first of too many.
-- Source:  none.
-- KEYS     1 a queue's sheets of records, list (include/keep.lua)
-- ARGV     1 most records   2 most bytes, both about
-- Returns  how many sheets were removed; 1 if more may be left to remove, as it has done enough for one call
local PAGE, BYTES, SHEETS, SAMPLES, SPARE = 10, 1000000, 10000, 20, 3600
local key, there = KEYS[1], redis.call('llen', KEYS[1])
if there == 0 then return {0, 0} end
local now = tonumber(redis.call('time')[1])

local function head(sheet)
  local second, kept, records = string.match(sheet, '^(%d+) (-?%d+) (%d+) ')
  return (tonumber(second) or 0) + (tonumber(kept) or 0), tonumber(records) or 1, tonumber(kept) or 0
end

local bytes, records, longest, samples = 0, 0, 0, math.min(there, SAMPLES)
for i = 1, samples do
  local sheet = redis.call('lindex', key, math.ceil(i * there / samples) - 1)
  local _, its, kept = head(sheet)
  bytes, records, longest = bytes + #sheet, records + its, math.max(longest, kept)
end
local most = math.floor(math.min(tonumber(ARGV[1]) * samples / records, tonumber(ARGV[2]) * samples / bytes))
local gone, read = math.min(math.max(there - most, 0), SHEETS), 0

while gone < SHEETS and read < BYTES do
  local page = redis.call('lrange', key, gone, gone + PAGE - 1)
  local old = 0
  while page[old + 1] and head(page[old + 1]) < now do
    read, old = read + #page[old + 1], old + 1
  end
  gone = gone + old
  if old < PAGE then break end
end
local is_more = (gone >= SHEETS or read >= BYTES) and 1 or 0
redis.call('ltrim', key, gone, -1)
redis.call('expire', key, longest + SPARE)
return {gone, is_more}
