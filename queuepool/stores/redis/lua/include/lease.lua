-- The score of a lease: its end on a grid of 1/16 s and, in the bits below, the tag of the worker that took it. So a
-- lease whose reply was lost is distinct from all others and can be given back at once (reclaim.lua); a batch keeps its
-- order, since each of its leases ends one step after the one before. Laravel compares scores with whole seconds.
-- 32 bits of seconds, 4 of grid and 17 of tag are the 53 of a double. Laravel's own scores are whole numbers: tag 0.
local GRID, TAGS = 16, 131072

local function lease_end(now, retry_after, tag, nth)
  return (math.floor((now + retry_after) * GRID) + nth) / GRID + tag / (GRID * TAGS)
end

local function tag_of(score)
  return score * GRID % 1 * TAGS
end

-- Whether this score, from ZSCORE, is of a lease that the worker with this tag took and still holds. The bytes alone do
-- not prove it: a job that was given back and reserved again has the same bytes.
local function is_held(score, tag)
  return score and tag ~= 0 and tag_of(tonumber(score)) == tag
end
