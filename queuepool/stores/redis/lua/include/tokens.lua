-- One wake-up token for each ready job: what BLPOP took, what Laravel's pop took twice and what its
-- failed pops left behind is put right here, whoever calls. Tokens are hints: where a job has moved already, a token
-- that cannot be written must not look like a failure (pcall).
local MOST_TOKENS = 100

local function count_tokens(ready, notify)
  local jobs, tokens = redis.call('llen', ready), redis.call('llen', notify)
  if tokens > jobs then
    redis.call('ltrim', notify, tokens - jobs, -1)
  end
  for _ = tokens + 1, math.min(jobs, tokens + MOST_TOKENS) do
    redis.call('rpush', notify, 1)
  end
end
