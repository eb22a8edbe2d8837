-- Tell one steward that the first due time has changed, so that it need not poll for it.
local function wake_if_first(delayed, wake, score)
  local first = redis.call('zrange', delayed, 0, 0, 'WITHSCORES')[2]
  if first and tonumber(first) >= score then
    redis.call('lpush', wake, 1)
    redis.call('ltrim', wake, 0, 0)
    redis.call('expire', wake, 60)
  end
end
