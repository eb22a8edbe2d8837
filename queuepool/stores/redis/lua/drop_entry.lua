-- drop_entry.lua: drop a quarantined payload, and with it the unique locks that it holds.
-- Source:  none.
-- KEYS     1 quarantine list   then the locks
-- ARGV     1 the quarantined entry   then the owner of each lock ('' = any)
-- Returns  1, or 0 when there is no such entry
-- include: release_lock
local dropped = redis.call('lrem', KEYS[1], 1, ARGV[1])
for i = 2, dropped == 1 and #KEYS or 0 do release_lock(KEYS[i], ARGV[i]) end
return dropped
