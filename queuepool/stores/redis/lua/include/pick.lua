-- Take jobs out of the middle of a list: each is replaced by a mark, then all marks are removed with one LREM. One LREM
-- for each job would compare it with every job before it.
-- `places`: where each was when it was read, ascending. Others have taken from the head meanwhile, or given back to it,
-- so all places have moved alike. A job that is not where it should be is looked for nearby, first towards the head.
-- The last job comes first: it is taken last by others, and where it is tells which of those before it are gone.
-- What is looked at is copied, so both its jobs and its bytes are bounded. Where the bound is reached, one job is still
-- found by LPOS, which compares a whole list, but copies nothing: lists of large jobs are short.
-- Returns for each 1 if it was taken, 0 if it is gone, 2 if so much was looked for that there was no look for it; never
-- for all of them.
local MARK = '\0queuepool:taken'
local PAGE_JOBS, PAGE_BYTES, TOWARDS_HEAD, TOWARDS_TAIL = 50, 64 * 1024, 10000, 1000
local MOST_LOOKS, MOST_BYTES = 20000, 4 * 1024 * 1024

local function pick(list, jobs, places)
  local taken, marks, shift, looks, bytes, is_compared = {}, 0, 0, 0, 0, false

  local function has_room() return looks < MOST_LOOKS and bytes < MOST_BYTES end

  -- Of equal ones the nearest.
  local function place_in(job, first, last, is_towards_head)
    local found
    looks = looks + last - first + 1
    for i, other in ipairs(redis.call('lrange', list, first, last)) do
      bytes = bytes + #other
      if other == job and (is_towards_head or not found) then found = first + i - 1 end
    end
    return found
  end

  local function near(job, at)
    local page = math.max(math.min(math.floor(PAGE_BYTES / #job), PAGE_JOBS), 1)
    local place, first = nil, at
    while not place and first > 0 and first > at - TOWARDS_HEAD and has_room() do
      place = place_in(job, math.max(first - page, 0), first - 1, true)
      first = first - page
    end
    first = at
    while not place and first < at + TOWARDS_TAIL and has_room() do
      place = place_in(job, first, first + page - 1)
      first = first + page
    end
    return place
  end

  -- Its place now, and whether that is known.
  local function place_of(job, at)
    if at < 0 then return nil, true end
    local there = redis.call('lindex', list, at)
    bytes = bytes + #(there or '')
    if there == job then return at, true end
    local place = near(job, at)
    if place or has_room() then return place, true end
    if is_compared then return nil, false end
    is_compared = true
    return redis.call('lpos', list, job) or nil, true
  end

  for n = #jobs, 1, -1 do
    local at, is_known = place_of(jobs[n], places[n] + shift)
    taken[n] = at and 1 or is_known and 0 or 2
    if at then
      redis.call('lset', list, at, MARK)
      shift, marks = at - places[n], marks + 1
    end
  end
  local is_behind = #jobs > 0 and places[1] > redis.call('llen', list) / 2
  if marks > 0 then redis.call('lrem', list, is_behind and -marks or marks, MARK) end
  return taken
end
