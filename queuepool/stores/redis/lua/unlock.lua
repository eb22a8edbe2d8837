-- unlock.lua: release unique locks.
-- Source:  Illuminate/Cache/LuaScripts.php, releaseLock (13.x)
-- KEYS     the locks
-- ARGV     the owner of each; '' = any
-- Returns  how many were released
local released = 0
for i, key in ipairs(KEYS) do
  if ARGV[i] == '' or redis.pcall('get', key) == ARGV[i] then released = released + redis.call('del', key) end
end
return released
