-- Restore one wake-up token for each ready job: BLPOP takes tokens, Laravel's pop takes two, and its failed pops leave
-- some behind. Tokens are hints: once a job has moved, a token that cannot be written must not look like a failure
-- (pcall).
-- Returns how many jobs are ready.
local MAX_TOKENS = 100

local function count_tokens(ready, notify)
  local jobs, tokens = redis.call('llen', ready), redis.call('llen', notify)
  if tokens > jobs then
    redis.call('ltrim', notify, tokens - jobs, -1)
  end
  for _ = tokens + 1, math.min(jobs, tokens + MAX_TOKENS) do
    redis.call('rpush', notify, 1)
  end
  return jobs
end
