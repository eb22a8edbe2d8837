-- drop_entry.lua: drop a quarantined payload with the unique locks that it holds; its state says so, if one is kept.
-- Source:  none.
-- KEYS     1 quarantine list   2 its state   then the locks
-- ARGV     1 the quarantined entry   2 the state ('' = it has none)   3 seconds that it is kept   then the owner of
--          each lock ('' = any)
-- Returns  1, or 0 when there is no such entry
-- include: full release_lock note_state
write_nothing(KEYS[1])
local dropped = redis.call('lrem', KEYS[1], 1, ARGV[1])
if dropped == 1 then renew_state(KEYS[2], ARGV[2], ARGV[3]) end
for i = 3, dropped == 1 and #KEYS or 0 do release_lock(KEYS[i], ARGV[i + 1]) end
return dropped
