-- retry_member.lua: as retry.lua, for one member of a flow, which goes on from there.
-- Source:  none.
-- KEYS     1 failed jobs, hash   2-9 those of its flow (flow.lua)   10 failed jobs by time, zset   11 ready list
--          12 notify list   13 its state   14 its lock
-- ARGV     1 not used   2 the member's number   3 not used   4-7 those of its flow (flow.lua)
--          8 id ('' = the record is in another store)   9 payload   10 the record's time   11 the state ('' = not tracked)   12 seconds that it is kept
--          13 the lock's owner ('' = it has no lock)   14 seconds that it lasts
-- Returns  1, 2 when something is left over (start_flow.lua), 0 when the record is gone, or -1 when another job holds the lock
-- include: clock splice tokens note_state take_lock put wake flow resume
local is_here = ARGV[8] ~= ''
if is_here and tonumber(redis.call('zscore', KEYS[10], ARGV[8]) or '') ~= tonumber(ARGV[10]) then return 0 end
redis.call('llen', KEYS[11])
if ARGV[13] ~= '' and not take_lock(KEYS[14], ARGV[13], ARGV[14]) then return -1 end

local flow = open_flow(2, 4)
local became = resume_member(flow, ARGV[2])
redis.call('rpush', KEYS[11], (splice(ARGV[9], none)) or ARGV[9])
if is_here then
  redis.call('hdel', KEYS[1], ARGV[8])
  redis.call('zrem', KEYS[10], ARGV[8])
end
note_state(KEYS[13], ARGV[11], ARGV[12])
pcall(count_tokens, KEYS[11], KEYS[12])
return became == 'more' and 2 or 1
