-- fail_member.lua: as fail.lua, for a member of a flow.
-- Source:  none.
-- KEYS     1 reserved zset   2-9 those of its flow (flow.lua)   10 failed jobs, hash   11 failed jobs by time, zset
--          12 the job's tallies   then, if more follows, the keys of follow.lua
-- ARGV     1 receipt   2 its worker's tag   3 how many arguments the member has   4-7 those of its flow (flow.lua)
--          then those of the member (settle_member.lua); then 1 id   2 record, JSON; '' = keep none
--          then, if more follows, the arguments of follow.lua
-- Returns  as finish_member.lua
-- include: clock lease full keep_failed release_lock note_state follow put wake flow settle_member
write_nothing(KEYS[1])
if not is_held(redis.call('zscore', KEYS[1], ARGV[1]), tonumber(ARGV[2])) then return 0 end
local last = 7 + tonumber(ARGV[3])
check_follow(13, last + 3)
local flow = open_flow(2, 4)
keep_failed(KEYS[10], KEYS[11], ARGV[last + 1], ARGV[last + 2], flow.now)
local became = settle_member(flow, 8, last)
local there = follow(13, last + 3)
redis.call('zrem', KEYS[1], ARGV[1])
redis.call('del', KEYS[12])
return {1, there, became}
