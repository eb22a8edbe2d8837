-- Take jobs out of the middle of a list: each is replaced by a mark, then all marks are removed with one LREM. One LREM
-- for each job would compare it with every job before it.
-- `jobs`: their bytes; `about`: where the first of them was when it was read, `span`: within how many places all were.
-- Others have taken from the head meanwhile, or put back there: look there first, then further towards the head, then
-- towards the tail.
-- Returns how many of each were taken.
local MARK = '\0queuepool:taken'
local PICK_PAGE, TOWARDS_HEAD, TOWARDS_TAIL = 50, 10000, 500

local function pick(list, jobs, about, span)
  local wanted, taken, left = {}, {}, #jobs
  for _, job in ipairs(jobs) do wanted[job] = (wanted[job] or 0) + 1 end

  local function mark(first, last)
    while left > 0 and first <= last do
      for i, job in ipairs(redis.call('lrange', list, first, math.min(first + PICK_PAGE - 1, last))) do
        if (wanted[job] or 0) > 0 then
          redis.call('lset', list, first + i - 1, MARK)
          wanted[job], taken[job], left = wanted[job] - 1, (taken[job] or 0) + 1, left - 1
        end
      end
      first = first + PICK_PAGE
    end
  end

  mark(about, about + span - 1)
  local nearest = about
  while left > 0 and nearest > 0 and nearest > about - TOWARDS_HEAD do
    mark(math.max(nearest - PICK_PAGE, 0), nearest - 1)
    nearest = nearest - PICK_PAGE
  end
  mark(about + span, about + span + TOWARDS_TAIL)
  local marks, is_behind = #jobs - left, about > redis.call('llen', list) / 2
  if marks > 0 then redis.call('lrem', list, is_behind and -marks or marks, MARK) end
  return taken
end

-- Whether this job is one of those that were taken; each counts once.
local function is_taken(taken, job)
  if (taken[job] or 0) == 0 then return false end
  taken[job] = taken[job] - 1
  return true
end
