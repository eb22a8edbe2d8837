-- finish.lua: remove a done job and write its ending, both or neither.
-- Source:  Illuminate/Queue/CallQueuedHandler.php, call (13.x)
-- KEYS     1 reserved zset   then, if anything follows, the keys of follow.lua
-- ARGV     1 receipt   2 its worker's tag   then, if anything follows, the arguments of follow.lua
-- Returns  1 and how many of the locks were there, or 0 when the lease was lost
-- Differs  Laravel dispatches the next job of a chain, then deletes: a crash in between runs the rest twice.
-- include: lease full release_lock note_state follow
write_nothing(KEYS[1])
if not is_held(redis.call('zscore', KEYS[1], ARGV[1]), tonumber(ARGV[2])) then return 0 end
check_follow(2, 3)
local there = follow(2, 3)
redis.call('zrem', KEYS[1], ARGV[1])
return 1 + there
