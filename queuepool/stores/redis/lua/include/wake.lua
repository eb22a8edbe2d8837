-- Notify the stewards that the first due time has changed, so that they need not poll for it. Only a hint: a job whose
-- notice was forbidden or missed is found at the next whole second.
local function wake_if_first(delayed, channel, score)
  local first = redis.call('zrange', delayed, 0, 0, 'WITHSCORES')[2]
  if first and tonumber(first) >= score then pcall(redis.call, 'publish', channel, 1) end
end
