-- The tags of workers: a sorted set by the Unix second until which no other worker may get the tag, renewed while in
-- use. A negative score means that the tag is retired: until that second no reserve under it is carried out, however
-- late it arrives.
-- Seconds: how long a tag is kept beyond a lease, at least and at most; how long a request may be on its way.
local KEPT, RENEWED, RETIRED = 300, 600, 3600

local function keep_tag(tags, tag, now, retry_after)
  redis.call('zadd', tags, now + retry_after + RENEWED, tag)
end

local function retire_tag(tags, tag, now)
  redis.call('zadd', tags, -now - RETIRED, tag)
end

-- False when the tag is retired.
local function use_tag(tags, tag, now, retry_after)
  local until_when = tonumber(redis.call('zscore', tags, tag) or 0)
  if until_when < 0 then return false end
  if until_when < now + retry_after + KEPT then keep_tag(tags, tag, now, retry_after) end
  return true
end
