-- Take jobs out of the middle of a list: each is replaced by a mark, then all marks are removed with one LREM. One LREM
-- for each job would compare it with every job before it.
-- `places`: where each was when it was read. Others have taken from the head meanwhile, or given back to it, so all places
-- have moved alike. A job that is not where it should be is looked for nearby, first towards the head.
-- Returns for each whether it was taken.
local MARK = '\0queuepool:taken'
local PICK_PAGE, TOWARDS_HEAD, TOWARDS_TAIL, MOST_LOOKS = 50, 10000, 1000, 20000

local function pick(list, jobs, places)
  local taken, marks, shift, looks = {}, 0, 0, 0

  local function place_in(job, first, last)
    looks = looks + last - first + 1
    for i, other in ipairs(redis.call('lrange', list, first, last)) do
      if other == job then return first + i - 1 end
    end
  end

  local function near(job, at)
    local place, first = nil, at
    while not place and first > 0 and first > at - TOWARDS_HEAD and looks < MOST_LOOKS do
      place = place_in(job, math.max(first - PICK_PAGE, 0), first - 1)
      first = first - PICK_PAGE
    end
    first = math.max(at, 0)
    while not place and first < at + TOWARDS_TAIL and looks < MOST_LOOKS do
      place = place_in(job, first, first + PICK_PAGE - 1)
      first = first + PICK_PAGE
    end
    return place
  end

  for n, job in ipairs(jobs) do
    local at = places[n] + shift
    if at < 0 or redis.call('lindex', list, at) ~= job then at = near(job, at) end
    taken[n] = at ~= nil
    if at then
      redis.call('lset', list, at, MARK)
      shift, marks = at - places[n], marks + 1
    end
  end
  local is_behind = #jobs > 0 and places[1] > redis.call('llen', list) / 2
  if marks > 0 then redis.call('lrem', list, is_behind and -marks or marks, MARK) end
  return taken
end
