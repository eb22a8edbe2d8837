-- drop.lua: drop records of failed jobs, not later ones of the same jobs, with the unique locks that they still hold.
-- Source:  Illuminate/Queue/Failed/FailedJobProviderInterface.php, forget and flush (13.x)
-- KEYS     1 failed jobs, hash   2 failed jobs by time, zset   then the locks
-- ARGV     for each record: its id, its time, how many locks it holds, the owner of each
-- Returns  for each 1, or 0 if there was none
-- Differs  Laravel's goes only by the id, and may drop a job that has failed again since it was read.
-- include: release_lock
local arg, lock, answers = 1, 3, {}
while arg <= #ARGV do
  local locks, gone = tonumber(ARGV[arg + 2]), 0
  if tonumber(redis.call('zscore', KEYS[2], ARGV[arg]) or '') == tonumber(ARGV[arg + 1]) then
    gone = redis.call('hdel', KEYS[1], ARGV[arg])
    redis.call('zrem', KEYS[2], ARGV[arg])
    for i = 1, locks do release_lock(KEYS[lock + i - 1], ARGV[arg + 2 + i]) end
  end
  answers[#answers + 1] = gone
  arg, lock = arg + 3 + locks, lock + locks
end
return answers
