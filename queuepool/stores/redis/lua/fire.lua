-- fire.lua: push the job of a schedule, once for each of its due times.
-- Source:  Illuminate/Queue/LuaScripts.php, push; Illuminate/Cache/RedisLock.php, acquire (13.x)
-- KEYS     1 marks of schedules, hash: name -> JSON   2 ready list   3 notify list   4 the lock, if there is one
-- ARGV     1 the schedule   2 the due time, whole Unix seconds   3 payload, '' = only settle the due time
--          4 the lock's owner   5 seconds that it lasts
-- Returns  the result (pushed, held, passed, settled, full) and the former mark, as JSON; nothing if there is no mark
-- Differs  Laravel locks each minute of a schedule by the clocks of its hosts, then pushes. A full server is a result,
--          not an error, so that the steward can name the schedule whose job has no room.
-- include: mark full
local text = redis.call('hmget', KEYS[1], ARGV[1])[1]
local mark, due = mark_in(text), tonumber(ARGV[2])
if not mark then return {} end
if mark.settled >= due then return {'settled', text} end

local function settle(result)
  mark.settled = due
  redis.call('hset', KEYS[1], ARGV[1], cjson.encode(mark))
  return {result, text}
end

if ARGV[3] == '' or (KEYS[4] and redis.call('exists', KEYS[4]) == 1) then
  write_nothing(KEYS[1])
  return settle(ARGV[3] == '' and 'passed' or 'held')
end
local answer = redis.pcall('rpush', KEYS[2], ARGV[3])
if type(answer) == 'table' and answer.err then
  if string.find(answer.err, 'OOM', 1, true) then return {'full', text} end
  return answer
end
pcall(redis.call, 'rpush', KEYS[3], 1)
if KEYS[4] then redis.call('set', KEYS[4], ARGV[4], 'PX', math.ceil(tonumber(ARGV[5]) * 1000)) end
mark.pushed = due
return settle('pushed')
