-- Release a lock if this owner holds it; '' = any owner. Returns 1; 0 if there is none; -1 if it stays: it belongs to
-- another owner, or the key has another type and is not Laravel's lock.
local function release_lock(key, owner)
  if owner == '' or redis.pcall('get', key) == owner then return redis.call('del', key) end
  return -redis.call('exists', key)
end
