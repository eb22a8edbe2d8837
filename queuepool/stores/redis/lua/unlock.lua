-- unlock.lua: release unique locks.
-- Source:  Illuminate/Cache/LuaScripts.php, releaseLock (13.x)
-- KEYS     the locks
-- ARGV     the owner of each; '' = any
-- Returns  how many were released
-- include: release_lock
local released = 0
for i, key in ipairs(KEYS) do
  released = released + release_lock(key, ARGV[i])
end
return released
