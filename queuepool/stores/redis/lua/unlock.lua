-- unlock.lua: release unique locks.
-- Source:  Illuminate/Cache/LuaScripts.php, releaseLock (13.x)
-- KEYS     the locks
-- ARGV     the owner of each; '' = any
-- Returns  for each: 1 if it was released, 0 if there was none, -1 if another owner holds it
-- include: release_lock
local answers = {}
for i, key in ipairs(KEYS) do
  answers[i] = release_lock(key, ARGV[i])
end
return answers
