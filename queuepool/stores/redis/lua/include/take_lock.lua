-- Take a lock for some seconds, or keep it if this owner has it; returns whether the owner has it now.
local function take_lock(key, owner, seconds)
  local holder = redis.pcall('get', key)
  if holder and holder ~= owner then return false end
  redis.call('set', key, owner, 'PX', math.ceil(tonumber(seconds) * 1000))
  return true
end
