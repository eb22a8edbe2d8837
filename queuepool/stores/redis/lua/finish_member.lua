-- finish_member.lua: as finish.lua, for a member of a flow.
-- Source:  none.
-- KEYS     1 reserved zset   2-9 those of its flow (flow.lua)   then, if more follows, the keys of follow.lua
-- ARGV     1 receipt   2 its worker's tag   3 how many arguments the member has   4-7 those of its flow (flow.lua)
--          then those of the member (settle_member.lua); then, if more follows, the arguments of follow.lua
-- Returns  {1, how many of the locks were there, what became of the flow}, or 0 when the lease was lost
-- include: clock lease full release_lock note_state follow put wake flow settle_member
write_nothing(KEYS[1])
if not is_held(redis.call('zscore', KEYS[1], ARGV[1]), tonumber(ARGV[2])) then return 0 end
local last = 7 + tonumber(ARGV[3])
check_follow(10, last + 1)
local became = settle_member(open_flow(2, 4), 8, last)
local there = follow(10, last + 1)
redis.call('zrem', KEYS[1], ARGV[1])
return {1, there, became}
