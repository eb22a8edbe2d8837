-- Give a job back as this text, now or for a delay, in the place of its lease. KEYS and ARGV as of release.lua.
local function put_off(job, receipt, now, delay)
  if delay > 0 then
    put(KEYS[2], now + delay, job)
  else
    redis.call('rpush', KEYS[1], job)
  end
  redis.call('zrem', KEYS[3], receipt)
  note_state(KEYS[6], ARGV[7], ARGV[8])
  if delay > 0 then
    wake_if_first(KEYS[2], ARGV[5], now + delay)
  else
    pcall(count_tokens, KEYS[1], KEYS[4])
  end
end

