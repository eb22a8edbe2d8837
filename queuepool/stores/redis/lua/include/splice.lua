-- Change a payload's top-level `attempts` and no other byte. cjson would turn [] into {} and round
-- numbers from 15 digits on, so it may only prove a splice, never write one.
local MOST_ATTEMPTS, MOST_PLACES = 65535, 8

local function replaced(job, first, last, attempts)
  return string.sub(job, 1, first - 1) .. string.format('%d', attempts) .. string.sub(job, last + 1)
end

-- Laravel's and our own payloads end in "attempts":N} or in "attempts":N,"delay":D}. There it is the
-- top-level key and outside of every string: inside one, its quotes would be escaped.
local function at_the_end(job)
  local tail = string.sub(job, -48)
  local first, digits = string.match(tail, '"attempts":()(%d+)}$')
  if not first then
    first, digits = string.match(tail, '"attempts":()(%d+),"delay":[%dnul]+}$')
  end
  if first then return #job - #tail + first, digits end
end

local function as_count(attempts)
  if attempts == nil or attempts == cjson.null then return 0 end
  if type(attempts) == 'string' and string.find(attempts, '^%d+$') then attempts = tonumber(attempts) end
  if type(attempts) ~= 'number' or attempts % 1 ~= 0 or attempts > MOST_ATTEMPTS then return nil end
  return math.max(attempts, 0)
end

local function places(job)
  local found, from = {}, 1
  while true do
    local first, last, value = string.find(job, '"attempts"%s*:%s*("?[%w%-]+"?)', from)
    if not first then return found end
    table.insert(found, 1, {last - #value + 1, last})
    from = last + 1
  end
end

local function anywhere(job, change)
  local fine, decoded = pcall(cjson.decode, job)
  if not fine then return nil, 'json' end
  if type(decoded) ~= 'table' or not string.find(job, '^%s*{') then return nil, 'not-an-object' end
  local attempts = as_count(decoded.attempts)
  if not attempts then return nil, 'attempts' end
  attempts = change(attempts)
  if decoded.attempts == nil then
    local rest = string.gsub(job, '^%s*{%s*', '', 1)
    local comma = string.find(rest, '^}') and '' or ','
    return string.format('{"attempts":%d', attempts) .. comma .. rest
  end
  for i, place in ipairs(places(job)) do
    if i > MOST_PLACES then break end
    -- A sentinel proves that this place, and no nested namesake, is the top-level key.
    local proof, probe = pcall(cjson.decode, replaced(job, place[1], place[2], MOST_ATTEMPTS + 1))
    if proof and probe.attempts == MOST_ATTEMPTS + 1 then
      return replaced(job, place[1], place[2], attempts)
    end
  end
  return nil, 'attempts'
end

-- The payload with change(attempts); or nil and why it cannot be a job.
local function splice(job, change)
  local first, digits = at_the_end(job)
  if first and tonumber(digits) <= MOST_ATTEMPTS then
    return replaced(job, first, first + #digits - 1, change(tonumber(digits)))
  end
  return anywhere(job, change)
end

local function one_more(attempts) return attempts + 1 end
local function one_less(attempts) return math.max(attempts - 1, 0) end
local function none() return 0 end

-- As it was before it was reserved.
local function unbumped(receipt)
  return splice(receipt, one_less) or receipt
end
