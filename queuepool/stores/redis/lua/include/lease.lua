-- The score of a reservation: its end on a grid of 1/16 s, and in the bits below the tag of the worker that took it. So a
-- reservation whose reply never arrived can be told from everybody else's and be given back at once (reclaim.lua); in its
-- order, for of one hand each job's lease ends a step after the one before. Laravel compares scores with whole seconds.
-- 32 bits of seconds, 4 of grid and 17 of tag are the 53 that a double has.
local GRID, TAGS = 16, 131072

local function lease_end(now, retry_after, tag, nth)
  return (math.floor((now + retry_after) * GRID) + nth) / GRID + tag / (GRID * TAGS)
end

local function tag_of(score)
  return score * GRID % 1 * TAGS
end
