-- admit.lua: push a job that comes from another store, unless it has come before, or was refused.
-- Source:  Illuminate/Queue/LuaScripts.php, push and later (13.x)
-- KEYS     1 ready list   2 notify list   3 delayed zset   4 the job's state   5 what became of the job
-- ARGV     1 the payload   2 the Unix second at which it is due, 0 = now   3 the stewards' channel   4 its state, '' = it
--          has none   5 seconds that the state is kept   6 seconds for which it is known that it came   then the Unix
--          second until which the sender waits
-- Returns  what has become of it: came or refused
-- include: late put wake note_state
local known = redis.call('get', KEYS[5])
if known then return known end
-- First, as a key of the wrong type must fail before anything is written.
redis.call('llen', KEYS[1])
redis.call('zcard', KEYS[3])
local due = tonumber(ARGV[2])
local is_delayed = due > tonumber(time_now[1]) + tonumber(time_now[2]) / 1000000

local function add()
  if is_delayed then put(KEYS[3], due, ARGV[1]) else redis.call('rpush', KEYS[1], ARGV[1]) end
end

redis.call('set', KEYS[5], 'came', 'EX', ARGV[6])
local is_added, problem = pcall(add)
if not is_added then
  -- The user may not run RPUSH or ZADD, say. The command that has just been allowed takes back what it wrote.
  redis.call('set', KEYS[5], 'refused', 'EX', ARGV[6])
  error(problem)
end
if is_delayed then pcall(wake_if_first, KEYS[3], ARGV[3], due) else pcall(redis.call, 'rpush', KEYS[2], 1) end
note_state(KEYS[4], ARGV[4], ARGV[5])
return 'came'
