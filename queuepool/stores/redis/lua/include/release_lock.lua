-- Release a lock if this owner holds it; '' = any owner. Returns 1, or 0. A key of another type is no lock of Laravel: it
-- stays.
local function release_lock(key, owner)
  if owner == '' or redis.pcall('get', key) == owner then return redis.call('del', key) end
  return 0
end
