-- move.lua: move ready and delayed jobs to another queue.
-- Source:  none.
-- KEYS     1 ready list   2 delayed zset   3 notify list   then the same three of the other queue
-- ARGV     1 where the first of the ready ones was when it was read   2 within how many places all of them were
--          3 the other queue's stewards' channel   then for each job: the number of its key, the job, the job as it is
--          to be there   then the Unix second until which the sender waits
-- Returns  for each job 1, or 0 if it was not there any more
-- include: late full pick put wake tokens
local answers, ready = {}, {}
write_nothing(KEYS[2])
-- First, as a key of the wrong type must fail before anything is taken.
redis.call('llen', KEYS[4])
redis.call('zcard', KEYS[5])
for arg = 4, #ARGV, 3 do
  if ARGV[arg] == '1' then ready[#ready + 1] = ARGV[arg + 1] end
end
local taken = #ready > 0 and pick(KEYS[1], ready, tonumber(ARGV[1]), tonumber(ARGV[2])) or {}

local function move_delayed(job, there)
  local due = tonumber(redis.call('zscore', KEYS[2], job) or '')
  if not due then return 0 end
  put(KEYS[5], due, there)
  redis.call('zrem', KEYS[2], job)
  wake_if_first(KEYS[5], ARGV[3], due)
  return 1
end

for arg = 4, #ARGV, 3 do
  local answer = 0
  if ARGV[arg] == '2' then
    answer = move_delayed(ARGV[arg + 1], ARGV[arg + 2])
  elseif is_taken(taken, ARGV[arg + 1]) then
    redis.call('rpush', KEYS[4], ARGV[arg + 2])
    answer = 1
  end
  answers[#answers + 1] = answer
end
pcall(count_tokens, KEYS[1], KEYS[3])
pcall(count_tokens, KEYS[4], KEYS[6])
return answers
