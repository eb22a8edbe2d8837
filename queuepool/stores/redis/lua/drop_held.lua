-- drop_held.lua: drop jobs of a queue, each together with its unique locks.
-- Source:  Illuminate/Cache/LuaScripts.php, releaseLock (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list   then the locks
-- ARGV     for each job: the number of its key, the job, where it was in the ready list, how many locks it holds, the
--          owner of each ('' = any)   then the Unix second until which the sender waits
-- Returns  for each job 1; 0 if a worker has taken it meanwhile: it stays, and keeps its locks; 2 = ask again (pick.lua)
-- include: late full pick release_lock
local arg, lock, answers, ready, places = 1, 5, {}, {}, {}
write_nothing(KEYS[2])
while arg <= #ARGV do
  if ARGV[arg] == '1' then
    ready[#ready + 1] = ARGV[arg + 1]
    places[#places + 1] = tonumber(ARGV[arg + 2])
  end
  arg = arg + 4 + tonumber(ARGV[arg + 3])
end
local taken, nth = pick(KEYS[1], ready, places), 0

local function ended(number, job)
  if number ~= 1 then return redis.call('zrem', KEYS[number], job) end
  nth = nth + 1
  return taken[nth]
end

arg = 1
while arg <= #ARGV do
  local gone, locks = ended(tonumber(ARGV[arg]), ARGV[arg + 1]), tonumber(ARGV[arg + 3])
  for i = 1, gone == 1 and locks or 0 do release_lock(KEYS[lock + i - 1], ARGV[arg + 3 + i]) end
  answers[#answers + 1] = gone
  arg, lock = arg + 4 + locks, lock + locks
end
if redis.call('llen', KEYS[1]) == 0 then redis.call('unlink', KEYS[4]) end
return answers
