-- Add one job to its queue, ready or delayed. check_add first: a key of a wrong type must fail before anything is
-- written.
local function check_add(ready, delayed, delay)
  redis.call(delay > 0 and 'zcard' or 'llen', delay > 0 and delayed or ready)
end

local function add(ready, notify, delayed, payload, test_clock, delay, channel)
  if delay > 0 then
    local due = clock(test_clock) + delay
    put(delayed, due, payload)
    wake_if_first(delayed, channel, due)
  else
    redis.call('rpush', ready, payload)
    pcall(redis.call, 'rpush', notify, 1)
  end
end
