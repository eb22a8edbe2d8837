-- Change a payload's top-level `attempts` and no other byte. cjson would turn [] into {} and round numbers from 15
-- digits on, so it may only verify a splice, never write one.
-- A job that was pushed with 65,535 attempts can be reserved one more time.
local MAX_ATTEMPTS = 65535
-- The server serves no other client while a script searches a payload: this many bytes take some tens of milliseconds.
local MAX_SEARCHED = 1024 * 1024
-- Of a longer payload only this many bytes at its start and at its end are searched.
local MAX_OF_AN_END = 64 * 1024
local LEVELS = {['{'] = 1, ['['] = 1, ['}'] = -1, [']'] = -1, ['"'] = 0}

local function replaced(job, first, last, attempts)
  return string.sub(job, 1, first - 1) .. attempts .. string.sub(job, last + 1)
end

-- Laravel's and our own payloads end in "attempts":N} or in "attempts":N,"delay":D}. There it is the top-level key, not
-- part of a string: in a string, its quotes would be escaped, or only the first one, as in the key "x\"attempts".
local function at_the_end(job)
  local first, digits = string.match(job, '[^\\]"attempts":()(%d+)}$', -18)
  if first then return first, digits end
  return string.match(job, '[^\\]"attempts":()(%d+),"delay":[%dnul]+}$', -48)
end

local function as_count(attempts)
  if attempts == nil or attempts == cjson.null then return 0 end
  if type(attempts) == 'string' and string.find(attempts, '^%d+$') then attempts = tonumber(attempts) end
  if type(attempts) ~= 'number' or attempts % 1 ~= 0 then return nil end
  return math.max(attempts, 0)
end

-- The end of the string that begins at `first`; nil if it is cut off.
local function end_of_string(job, first)
  local at = first + 1
  while true do
    local found = string.find(job, '["\\]', at)
    if not found or string.sub(job, found, found) == '"' then return found end
    at = found + 2
  end
end

-- The next brace, bracket or string: its first character, and its first and last position; nil if there is none.
local function next_token(job, at)
  local first, _, char = string.find(job, '([{}%[%]"])', at)
  if char ~= '"' then return char, first, first end
  local last = end_of_string(job, first)
  return last and char, first, last
end

-- The first and last position of the value of the top-level key `attempts`; `job` must be the start of valid JSON.
local function top_level(job)
  local depth, at = 0, 1
  while true do
    local char, first, last = next_token(job, at)
    if not char then return nil end
    at = last + 1
    if depth == 1 and char == '"' and string.sub(job, first, last) == '"attempts"' then
      local begins, ends = string.match(job, '^%s*:%s*()"?[%w%-]+"?()', at)
      if begins then return begins, ends - 1 end
    end
    depth = depth + LEVELS[char]
  end
end

-- Whether only one object ends in the end of valid JSON from `at`: then what is before `at` is at the top level.
local function is_at_top_level(job, at)
  local depth = 1
  while depth > 0 do
    local char, _, last = next_token(job, at)
    if not char then return false end
    depth, at = depth + LEVELS[char], last + 1
  end
  return string.find(job, '^%s*$', at) ~= nil
end

-- As top_level, of a payload that is too long to be searched: Horizon writes `type`, `tags` and more after the attempts,
-- and Laravel's own retry, by cjson, leaves them at any place.
local function near_an_end(job)
  local first, last = top_level(string.sub(job, 1, MAX_OF_AN_END))
  if first and string.find(job, '^%d+%s*[,}]', first) then return first, last end
  local before = #job - MAX_OF_AN_END
  local tail = string.sub(job, before + 1)
  local begins, ends = string.match(tail, '^.*[^\\]"attempts"%s*:%s*()%d+()%s*[,}]')
  if begins and is_at_top_level(tail, ends) then return before + begins, before + ends - 1 end
end

local function without_a_search(job, change)
  local first, last = near_an_end(job)
  if not first then return nil, 'too-large' end
  local attempts = change(tonumber(string.sub(job, first, last)))
  if attempts > MAX_ATTEMPTS + 1 then return nil, 'attempts' end
  return replaced(job, first, last, attempts)
end

local function anywhere(job, change)
  if #job > MAX_SEARCHED then return without_a_search(job, change) end
  local fine, decoded = pcall(cjson.decode, job)
  -- cjson takes a NUL for the end of the text, and what comes after it would never be read.
  if not fine or string.find(job, '\0', 1, true) then return nil, 'json' end
  if type(decoded) ~= 'table' or not string.find(job, '^%s*{') then return nil, 'not-an-object' end
  local attempts = as_count(decoded.attempts)
  attempts = attempts and change(attempts)
  if not attempts or attempts > MAX_ATTEMPTS + 1 then return nil, 'attempts' end
  if decoded.attempts == nil then
    local rest = string.gsub(job, '^%s*{%s*', '', 1)
    local comma = string.find(rest, '^}') and '' or ','
    return string.format('{"attempts":%d', attempts) .. comma .. rest
  end
  local first, last = top_level(job)
  local spliced = first and replaced(job, first, last, attempts)
  -- Decode again to verify it: if the key is written with escapes, or twice, the search has found another.
  local proof, again = pcall(cjson.decode, spliced or '')
  if not proof or again.attempts ~= attempts then return nil, 'attempts' end
  return spliced
end

-- The payload with change(attempts) in place of its attempts; or nil, and why it cannot be a job.
local function splice(job, change)
  local first, digits = at_the_end(job)
  local attempts = first and change(tonumber(digits))
  if attempts and attempts <= MAX_ATTEMPTS + 1 then
    return replaced(job, first, first + #digits - 1, attempts)
  end
  return anywhere(job, change)
end

local function one_more(attempts) return attempts + 1 end
local function one_less(attempts) return math.max(attempts - 1, 0) end
local function none() return 0 end

-- The payload as it was before it was reserved.
local function unbumped(receipt)
  return splice(receipt, one_less) or receipt
end
