-- cancel_member.lua: as cancel.lua, for a member of a flow that waits in its queue.
-- Source:  none.
-- KEYS     1 ready list   2-9 those of its flow (flow.lua)   10 failed jobs, hash   11 failed jobs by time, zset
--          12 the job's tallies   13 delayed zset   14 notify list   then, if more follows, the keys of follow.lua
-- ARGV     1 the job's bytes   2 not used   3 how many arguments the member has   4-7 those of its flow (flow.lua)
--          then those of the member (settle_member.lua); then 1 id   2 record, JSON; '' = keep none
--          then, if more follows, the arguments of follow.lua
-- Returns  {1, how many of the locks were there, what became of the flow}, or 0 when it waits no longer
-- include: clock full keep_failed release_lock note_state follow put wake flow settle_member
write_nothing(KEYS[13])
local last = 7 + tonumber(ARGV[3])
-- Fail before anything is written if the record could not be: what is removed must be recorded.
redis.call('hexists', KEYS[10], ARGV[last + 1])
redis.call('zcard', KEYS[11])
check_follow(15, last + 3)
if redis.call('lrem', KEYS[1], 1, ARGV[1]) == 0 and redis.call('zrem', KEYS[13], ARGV[1]) == 0 then return 0 end
local flow = open_flow(2, 4)
keep_failed(KEYS[10], KEYS[11], ARGV[last + 1], ARGV[last + 2], flow.now)
local became = settle_member(flow, 8, last)
local there = follow(15, last + 3)
redis.call('del', KEYS[12])
if redis.call('llen', KEYS[1]) == 0 then redis.call('del', KEYS[14]) end
return {1, there, became}
