-- Seconds since 1970 as the server sees them; a test passes its own.
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('time')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end
