-- Keep the record of a failed job; '' = keep none. An id may be pushed twice: the second job must not replace the first.
-- From the 33rd on their numbers have gaps, as of a thousand jobs with one id each would try a thousand numbers.
local function keep_failed(failed, times, wanted, record, now)
  if record == '' then return end
  local id, number = wanted, 1
  while redis.call('hexists', failed, id) == 1 do
    number = number < 32 and number + 1 or number + redis.call('hlen', failed)
    id = wanted .. '-' .. number
  end
  redis.call('hset', failed, id, record)
  redis.call('zadd', times, now, id)
end
