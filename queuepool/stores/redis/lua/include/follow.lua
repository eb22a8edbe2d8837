-- Write the ending of a job in the step that ends it: release its unique locks, push the outcome for Laravel, set the
-- state of a tracked job.
-- KEYS[key]: ready list of the outcome, its notify list, the job's state, then the locks. ARGV[arg]: the outcome's
-- payload ('' = none), the state ('' = none), seconds that it is kept, then the owner of each lock ('' = any).
-- Returns how many of the locks were there.

-- Fail before anything is written if the outcome could not be.
local function check_follow(key, arg)
  if KEYS[key] and ARGV[arg] ~= '' then redis.call('llen', KEYS[key]) end
end

local function follow(key, arg)
  if not KEYS[key] then return 0 end
  if ARGV[arg] ~= '' then
    redis.call('rpush', KEYS[key], ARGV[arg])
    pcall(redis.call, 'rpush', KEYS[key + 1], 1)
  end
  note_state(KEYS[key + 2], ARGV[arg + 1], ARGV[arg + 2])
  local there = 0
  for i = key + 3, #KEYS do
    if release_lock(KEYS[i], ARGV[arg + i - key]) ~= 0 then there = there + 1 end
  end
  return there
end
