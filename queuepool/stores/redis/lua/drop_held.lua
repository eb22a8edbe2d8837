-- drop_held.lua: drop jobs of a queue, each together with its unique locks, and say so in its state, if one is kept.
-- Source:  Illuminate/Cache/LuaScripts.php, releaseLock (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list   then of each job: its state, its locks
-- ARGV     for each job: the number of its key, the job, where it was in the ready list, its state ('' = it has none),
--          seconds that it is kept, how many locks the job holds, the owner of each ('' = any)   then the Unix second
--          until which the sender waits
-- Returns  for each job 1; 0 if a worker has taken it meanwhile: it stays and keeps its locks; 2 = ask again (pick.lua)
-- include: late full pick release_lock note_state
local ITS_ARGS = 6
local arg, key, answers, ready, places = 1, 5, {}, {}, {}
write_nothing(KEYS[2])
while arg <= #ARGV do
  if ARGV[arg] == '1' then
    ready[#ready + 1] = ARGV[arg + 1]
    places[#places + 1] = tonumber(ARGV[arg + 2])
  end
  arg = arg + ITS_ARGS + tonumber(ARGV[arg + 5])
end
local taken, nth = pick(KEYS[1], ready, places), 0

local function ended(number, job)
  if number ~= 1 then return redis.call('zrem', KEYS[number], job) end
  nth = nth + 1
  return taken[nth]
end

arg = 1
while arg <= #ARGV do
  local gone, locks = ended(tonumber(ARGV[arg]), ARGV[arg + 1]), tonumber(ARGV[arg + 5])
  if gone == 1 then renew_state(KEYS[key], ARGV[arg + 3], ARGV[arg + 4]) end
  for i = 1, gone == 1 and locks or 0 do release_lock(KEYS[key + i], ARGV[arg + 5 + i]) end
  answers[#answers + 1] = gone
  arg, key = arg + ITS_ARGS + locks, key + 1 + locks
end
if redis.call('llen', KEYS[1]) == 0 then redis.call('unlink', KEYS[4]) end
return answers
