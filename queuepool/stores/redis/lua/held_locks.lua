-- held_locks.lua: the owners of locks, and when they expire.
-- Source:  none.
-- KEYS     the locks
-- ARGV     1 most bytes of an owner
-- Returns  for each: its owner, and the milliseconds until it expires (-1 = never, -2 = it is free)
local found = {}
for i, key in ipairs(KEYS) do
  local owner = redis.pcall('get', key)
  found[2 * i - 1] = type(owner) == 'string' and string.sub(owner, 1, tonumber(ARGV[1])) or ''
  found[2 * i] = redis.call('pttl', key)
end
return found
