-- move.lua: move ready and delayed jobs to another queue, and say so in the state of each, if one is kept. Within one
--          queue delayed jobs become due now.
-- Source:  none.
-- KEYS     1 ready list   2 delayed zset   3 notify list   then the same three of the other queue   then the state of
--          each job
-- ARGV     1 the other queue's stewards' channel   then for each job: the number of its key, the job, where it was in
--          the ready list, the job as it is to be there, its state ('' = it has none), seconds that it is kept   then
--          the Unix second until which the sender waits
-- Returns  for each job 1, or 0 if it was not there any more; 2 = ask again (pick.lua)
-- include: late full pick put wake tokens note_state
local ITS_ARGS = 6
local answers, ready, places = {}, {}, {}
write_nothing(KEYS[2])
-- First, as a key of the wrong type must fail before anything is taken.
redis.call('llen', KEYS[4])
redis.call('zcard', KEYS[5])
for arg = 2, #ARGV, ITS_ARGS do
  if ARGV[arg] == '1' then
    ready[#ready + 1] = ARGV[arg + 1]
    places[#places + 1] = tonumber(ARGV[arg + 2])
  end
end
local taken, nth = pick(KEYS[1], ready, places), 0

local function move_ready(there)
  nth = nth + 1
  if taken[nth] ~= 1 then return taken[nth] end
  redis.call('rpush', KEYS[4], there)
  return 1
end

local function move_delayed(job, there)
  local due = tonumber(redis.call('zscore', KEYS[2], job) or '')
  if not due then return 0 end
  if KEYS[5] == KEYS[2] then
    due = math.min(due, tonumber(time_now[1]))
    redis.call('zadd', KEYS[2], 'XX', due, job)
    wake_if_first(KEYS[2], ARGV[1], due)
    return 1
  end
  put(KEYS[5], due, there)
  redis.call('zrem', KEYS[2], job)
  wake_if_first(KEYS[5], ARGV[1], due)
  return 1
end

for arg = 2, #ARGV, ITS_ARGS do
  local there, answer = ARGV[arg + 3]
  if ARGV[arg] == '1' then answer = move_ready(there) else answer = move_delayed(ARGV[arg + 1], there) end
  answers[#answers + 1] = answer
  if answer == 1 then renew_state(KEYS[6 + #answers], ARGV[arg + 4], ARGV[arg + 5]) end
end
pcall(count_tokens, KEYS[1], KEYS[3])
pcall(count_tokens, KEYS[4], KEYS[6])
return answers
