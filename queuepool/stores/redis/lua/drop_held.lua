-- drop_held.lua: drop jobs of a queue, each together with its unique locks.
-- Source:  Illuminate/Cache/LuaScripts.php, releaseLock (13.x)
-- KEYS     1 ready list   2 delayed zset   3 reserved zset   4 notify list   then the locks
-- ARGV     for each job: the number of its key, the job, how many locks it holds, the owner of each ('' = any)
--          then the Unix second until which the sender waits
-- Returns  how many jobs were dropped: one that a worker has taken meanwhile stays, and keeps its locks
-- include: late release_lock
local arg, lock, dropped = 1, 5, 0
while arg <= #ARGV do
  local key, job, locks = KEYS[tonumber(ARGV[arg])], ARGV[arg + 1], tonumber(ARGV[arg + 2])
  local gone = ARGV[arg] == '1' and redis.call('lrem', key, 1, job) or ARGV[arg] ~= '1' and redis.call('zrem', key, job)
  for i = 1, locks do
    if gone == 1 then release_lock(KEYS[lock + i - 1], ARGV[arg + 2 + i]) end
  end
  dropped = dropped + gone
  arg, lock = arg + 3 + locks, lock + locks
end
if redis.call('llen', KEYS[1]) == 0 then redis.call('unlink', KEYS[4]) end
return dropped
