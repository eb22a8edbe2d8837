-- The score of a reservation: its end on a grid of 1/16 s, and in the bits below the tag of the worker that took it. So a
-- reservation whose reply never arrived can be told from everybody else's and be given back at once (reclaim.lua); in its
-- order, for of one hand each job's lease ends a step after the one before. Laravel compares scores with whole seconds.
-- 32 bits of seconds, 4 of grid and 17 of tag are the 53 that a double has. Laravel's own scores are whole: tag 0.
local GRID, TAGS = 16, 131072

local function lease_end(now, retry_after, tag, nth)
  return (math.floor((now + retry_after) * GRID) + nth) / GRID + tag / (GRID * TAGS)
end

local function tag_of(score)
  return score * GRID % 1 * TAGS
end

-- Whether this score, as ZSCORE gives it, is of a reservation that the worker with this tag made and still has. The bytes
-- alone do not tell: given back and reserved again, a job has the very same ones.
local function is_held(score, tag)
  return score and tag ~= 0 and tag_of(tonumber(score)) == tag
end
