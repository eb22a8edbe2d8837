-- The tags of workers: a sorted set by the second until which nobody else may be given one, renewed while it is used.
-- Below zero: the tag is retired, and until then no reserve under it is carried out, however late it is delivered.
-- Seconds: beyond a lease, at least and at most; as long as a request may be on its way.
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
