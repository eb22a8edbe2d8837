-- clear.lua: drop a queue's first jobs, but for those with which something else ends; of those return the bytes.
-- Source:  Illuminate/Queue/LuaScripts.php, clear (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list
-- ARGV     1 most jobs   2 most bytes, plus a page   3 how the keys of states begin ('' = there are none)   then the
--          texts, one of which is in each job that may hold a lock   then the Unix second until which the sender waits
-- Returns  how many there were, how many were dropped, then of each that may hold a lock, or has a state: its key's
--          number, the job
-- Differs  Laravel's drops all at once and leaves their locks. Here a job and its lock go in one step (drop_held.lua);
--          no step takes longer for a queue of a million. Ready jobs come last: meanwhile the others may become ready.
--          Does nothing once its sender has given up.
-- include: late
local PAGE = 50
local most, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local there = redis.call('llen', KEYS[1]) + redis.call('zcard', KEYS[2]) + redis.call('zcard', KEYS[3])
local dropped, found, page = 0, {}, 1
local states = ARGV[3]
-- The id is within so many bytes of a payload's end: only Horizon's tags and a signature come after it.
local END = 65536

-- The keys in which the state of a job may be kept. Its pool may track it, which its payload does not say.
local function keys_of(job)
  local uuid = string.match(job, '"uuid":"([^"]*)"') or ''
  if string.find(job, '"id":"' .. uuid .. '"', 1, true) then return states .. uuid, states end
  return states .. uuid, states .. (string.match(string.sub(job, -END), '^.*"id":"([^"]*)"') or '')
end

local function exist(keys)
  -- A user may lack the right to ask: then only jobs whose payloads ask for it are told.
  local found = redis.pcall('exists', unpack(keys))
  return type(found) == 'number' and found > 0
end

local function are_tracked(jobs)
  if states == '' then return false end
  local keys = {}
  for i, job in ipairs(jobs) do keys[2 * i - 1], keys[2 * i] = keys_of(job) end
  return exist(keys)
end

local function is_marked(job)
  for i = 4, #ARGV do
    if string.find(job, ARGV[i], 1, true) then return true end
  end
end

-- The jobs to drop, and how many others there are.
local function divided(jobs, number)
  local free, before, are_some_tracked = {}, room, are_tracked(jobs)
  for _, job in ipairs(jobs) do
    room = room - #job
    if is_marked(job) or (are_some_tracked and exist({keys_of(job)})) then
      found[#found + 1] = number
      found[#found + 1] = job
    else
      free[#free + 1] = job
    end
  end
  dropped = dropped + #free
  -- The next page, if its jobs are as large: a page is copied as a whole.
  page = math.min(2 * page, PAGE, math.floor(room * #jobs / math.max(before - room, 1)) + 1)
  return free, #jobs - #free
end

-- How many jobs to read next: 0 = this was enough.
local function next_page() return room > 0 and math.max(math.min(page, most - dropped - #found / 2), 0) or 0 end

for number = 3, 2, -1 do
  local first = 0
  while next_page() > 0 do
    local jobs = redis.call('zrangebyscore', KEYS[number], '-inf', '+inf', 'LIMIT', first, next_page())
    if #jobs == 0 then break end
    local free, held = divided(jobs, number)
    if #free > 0 then redis.call('zrem', KEYS[number], unpack(free)) end
    first = first + held
  end
end

local first = 0
while next_page() > 0 do
  local jobs = redis.call('lrange', KEYS[1], first, first + next_page() - 1)
  if #jobs == 0 then break end
  local free, held = divided(jobs, 1)
  if first + held == 0 then
    redis.call('ltrim', KEYS[1], #jobs, -1)
  else
    for _, job in ipairs(free) do redis.call('lrem', KEYS[1], 1, job) end
  end
  first = first + held
end
if redis.call('llen', KEYS[1]) == 0 then redis.call('unlink', KEYS[4]) end
return {there, dropped, unpack(found)}
