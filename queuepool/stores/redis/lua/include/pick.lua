-- Take jobs out of the middle of a list: each is replaced by a mark, then all marks are removed with one LREM. One LREM
-- for each job would compare it with every job before it.
-- `places`: where each was when it was read, ascending. Others have taken from the head meanwhile, or given back to it, so
-- all places have moved alike. A job that is not where it should be is looked for nearby, first towards the head. The last
-- job comes first: it is taken last by others, and its place shows which of those before it are gone.
-- Returns for each 1 if it was taken, 0 if it is gone, 2 if the search became too long before it was reached; never for
-- all of them.
local MARK = '\0queuepool:taken'
local PICK_PAGE, TOWARDS_HEAD, TOWARDS_TAIL, MOST_LOOKS = 50, 10000, 1000, 20000

local function pick(list, jobs, places)
  local taken, marks, shift, looks = {}, 0, 0, 0

  -- Of equal ones the nearest.
  local function place_in(job, first, last, is_towards_head)
    looks = looks + last - first + 1
    local found
    for i, other in ipairs(redis.call('lrange', list, first, last)) do
      if other == job then
        found = first + i - 1
        if not is_towards_head then return found end
      end
    end
    return found
  end

  local function near(job, at)
    local place, first = nil, at
    while not place and first > 0 and first > at - TOWARDS_HEAD and looks < MOST_LOOKS do
      place = place_in(job, math.max(first - PICK_PAGE, 0), first - 1, true)
      first = first - PICK_PAGE
    end
    first = at
    while not place and first < at + TOWARDS_TAIL and looks < MOST_LOOKS do
      place = place_in(job, first, first + PICK_PAGE - 1)
      first = first + PICK_PAGE
    end
    return place
  end

  for n = #jobs, 1, -1 do
    local at = places[n] + shift
    taken[n] = 0
    if at >= 0 and redis.call('lindex', list, at) ~= jobs[n] then
      at = near(jobs[n], at)
      if not at and looks >= MOST_LOOKS then taken[n] = 2 end
    end
    if at and at >= 0 then
      redis.call('lset', list, at, MARK)
      taken[n], shift, marks = 1, at - places[n], marks + 1
    end
  end
  local is_behind = #jobs > 0 and places[1] > redis.call('llen', list) / 2
  if marks > 0 then redis.call('lrem', list, is_behind and -marks or marks, MARK) end
  return taken
end
