-- What follows the end of a job, in the same step: its unique locks are released, and Laravel learns how it ended.
-- KEYS[key]: ready list of the outcome, its notify list, then the locks. ARGV[arg]: the outcome's payload ('' = none),
-- then the owner of each lock ('' = any).

-- Fail before anything is written if the outcome could not be.
local function check_follow(key, arg)
  if KEYS[key] and ARGV[arg] ~= '' then redis.call('llen', KEYS[key]) end
end

local function follow(key, arg)
  if not KEYS[key] then return end
  if ARGV[arg] ~= '' then
    redis.call('rpush', KEYS[key], ARGV[arg])
    pcall(redis.call, 'rpush', KEYS[key + 1], 1)
  end
  for i = key + 2, #KEYS do
    local owner = ARGV[arg + i - key - 1]
    -- A key of another type is no lock of Laravel: it stays.
    if owner == '' or redis.pcall('get', KEYS[i]) == owner then redis.call('del', KEYS[i]) end
  end
end
