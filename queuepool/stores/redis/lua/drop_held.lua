-- drop_held.lua: drop jobs of a queue, each together with its unique locks.
-- Source:  Illuminate/Cache/LuaScripts.php, releaseLock (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list   then the locks
-- ARGV     1 where the first of the ready ones was when it was read   2 within how many places all of them were
--          then for each job: the number of its key, the job, how many locks it holds, the owner of each ('' = any)
--          then the Unix second until which the sender waits
-- Returns  for each job 1; 0 if a worker has taken it meanwhile: it stays, and keeps its locks
-- include: late full pick release_lock
local arg, lock, answers, ready = 3, 5, {}, {}
write_nothing(KEYS[2])
while arg <= #ARGV do
  if ARGV[arg] == '1' then ready[#ready + 1] = ARGV[arg + 1] end
  arg = arg + 3 + tonumber(ARGV[arg + 2])
end
local taken = #ready > 0 and pick(KEYS[1], ready, tonumber(ARGV[1]), tonumber(ARGV[2])) or {}
arg = 3
while arg <= #ARGV do
  local number, job, locks = tonumber(ARGV[arg]), ARGV[arg + 1], tonumber(ARGV[arg + 2])
  local gone = number == 1 and (is_taken(taken, job) and 1 or 0) or number ~= 1 and redis.call('zrem', KEYS[number], job)
  for i = 1, locks do
    if gone == 1 then release_lock(KEYS[lock + i - 1], ARGV[arg + 2 + i]) end
  end
  answers[#answers + 1] = gone
  arg, lock = arg + 3 + locks, lock + locks
end
if redis.call('llen', KEYS[1]) == 0 then redis.call('unlink', KEYS[4]) end
return answers
